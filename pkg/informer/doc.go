// Package informer translates what the API server says into events of the
// queue store: pods, nodes and namespaces ([Watch]), and the configuration of
// the queues ([ConfigMaps] or [ConfigFile]). It decides nothing.
//
// The handlers may run before, after or while the scheduler sees the same
// object; the store does not mind (see its assumptions).
package informer
