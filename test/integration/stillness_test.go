//go:build !nightly

package integration

import "time"

// stillness is how long no pod may be evicted where preemption has to have ended.
const stillness = 20 * time.Second
