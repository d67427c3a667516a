package main

import (
	"bytes"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/forecast"
)

// FuzzRecordedTree reads anything as a recorded tree of queues: it is refused with a
// sentence, or can be shown and be held against a configuration.
func FuzzRecordedTree(f *testing.F) {
	for _, seed := range []string{
		`{"queuename":"root","children":[{"queuename":"root.a","isLeaf":true,"maxResource":{"vcore":1000},"guaranteedResource":{"vcore":-1},"allocatedResource":{"vcore":9223372036854775807},"pendingResource":{"":-9223372036854775808}}]}`,
		`{"queuename":"root","maxResource":{"vcore":1},"children":[{"queuename":"root.a"},{"queuename":"root.a"}]}`,
		`{"queuename":"root","children":[{"queuename":"root.a.b"}]}`, `{"queuename":"root","children":[null]}`, `{"queuename":"root"}{}`,
		`{"queuename":"root","status":"Draining","properties":{"a":"b"}}`, `{"queuename":"root","maxResource":{"vcore":1e400}}`,
		"", "null", "[]", "\xff", `{"queuename":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	before := expect.Get(config.Parse([]byte("partitions: [{name: default, queues: [{name: root, queues: [{name: a, resources: {max: {vcore: 1}}}]}]}]")))(f)
	after := expect.Get(config.Parse([]byte("partitions: [{name: default, queues: [{name: root, queues: [{name: b, resources: {guaranteed: {vcore: 2}}}]}]}]")))(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := recordedTree(standardInput, bytes.NewReader(text))
		if err != nil {
			expect.That(t, err.Error() != "" && tree == nil,
				"refused with %q, and there is a tree: %v", err, tree != nil)
			return
		}
		var shown bytes.Buffer
		printQueues(&shown, tree, nil)
		expect.That(t, shown.Len() > 0, "nothing is shown")
		books := booksOf(tree)
		then, _, err := books.Under(before)
		if err != nil {
			return // it may contradict itself in what only the books ask for
		}
		now, _, err := books.Under(before, after)
		expect.That(t, err == nil, "a tree that the old configuration fits: %v", err)
		f := forecast.Compare(forecast.Of(then, true), forecast.Of(now, true))
		(&comparison{Forecast: &f}).printForecast(&shown)
	})
}
