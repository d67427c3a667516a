//go:build !nightly

package integration

import "time"

// stillness is how long no pod may be evicted after preemption must have ended.
const stillness = 20 * time.Second
