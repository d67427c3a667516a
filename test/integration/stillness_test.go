//go:build !nightly

package integration

import "time"

// stillness is how long nobody may be evicted where preemption has to have ended.
const stillness = 20 * time.Second
