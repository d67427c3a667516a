//go:build nightly

package integration

import "time"

// stillness is how long no pod may be evicted after preemption must have ended: many
// times longer than every interval of the scheduler.
const stillness = 5 * time.Minute
