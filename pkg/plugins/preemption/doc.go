// Package preemption adapts quotas and preemption between queues to the
// scheduling cycle: may the pod run now (PreFilter), and who must make room for
// it if it does not fit (PostFilter).
package preemption
