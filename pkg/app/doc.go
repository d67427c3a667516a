// Package app contains what all plugins of all profiles of one scheduler share: the
// queue store, the sources of its input, and the goroutines around it.
//
// Upstream makes an instance of every plugin for every profile, in no particular order,
// and each instance gets the same informer factory. The factory is therefore the key:
// [For] returns the same Process to every plugin of one scheduler, and another one to the
// plugins of another scheduler in the same program (tests run many). QueueSort has the
// settings of the store in its arguments and calls [Process.Configure], which makes all of
// the following. The other plugins find the store there when their first pod arrives.
//
//	informers ─► store ─► wake ─► pump ─► handle.Activate
//	ConfigMaps or file ─► config.Parse ─► follower ─► store.Configure
//	store ─► work ─► evict.Executor ─► conditions, taints, deletes
//	store ─► reports ─► events.Reporter ─► condition and event of the pod
//	store ─► decisions ─► record.Record ─► REST, metrics
//	store ─► facts ─► eventlog.Log ─► REST
//	store ─► changes ─► inventory.Inventory ─► REST, audit
//	nodes, holds ─► nominations ─► nominations that are cleared
//	an invalid ConfigMap or namespace ─► announcer ─► its event
//
// The goroutines end with the context that the plugins were made with.
package app
