// Package plugintest gives the tests of the plugins what a scheduler would: a
// handle that is upstream's own framework runtime on a fake API server, pods
// and configurations for it, and a record of what was activated and told.
//
//	h := plugintest.New(t, plugintest.Queues(document), pods...)
//	plugin, err := queuesort.New(h.Context(), plugintest.Args(), h)
//	h.Start(t) // the informers run, and the handle sees changes
package plugintest
