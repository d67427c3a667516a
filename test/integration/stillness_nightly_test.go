//go:build nightly

package integration

import "time"

// stillness is how long no pod may be evicted where preemption has to have ended: longer
// than every interval of the scheduler, many times.
const stillness = 5 * time.Minute
