package app

import (
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// TestFollowPodGroups: plugins are made in any order, and only a managed profile
// counts.
func TestFollowPodGroups(t *testing.T) {
	const before, after = "before the store is made", "after it"
	for _, test := range []struct {
		name     string
		profiles map[string][]string // by time, the profiles that start PodGroups
		followed int
	}{
		{"nobody says so", nil, 0},
		{"first", map[string][]string{before: {plugintest.Profile}}, 1},
		{"last", map[string][]string{after: {plugintest.Profile}}, 1},
		{"twice", map[string][]string{before: {plugintest.Profile, plugintest.Profile}, after: {plugintest.Profile}}, 1},
		{"not managed", map[string][]string{before: {"default-scheduler"}, after: {"other"}}, 0},
		{"one is managed", map[string][]string{before: {"default-scheduler", plugintest.Profile}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := plugintest.New(t)
			p := For(h.Context(), h)
			var told []*store.Store
			say := func(when string) {
				for _, profile := range test.profiles[when] {
					p.FollowPodGroups(profile, func(s *store.Store) { told = append(told, s) })
				}
			}
			say(before)
			if len(told) > 0 {
				t.Error("there is no store yet")
			}
			configured(t, h, plugintest.Args())
			say(after)
			if len(told) != test.followed || slices.ContainsFunc(told, func(s *store.Store) bool { return s != p.Store() }) {
				t.Errorf("followed %d times, want %d, for the store that there is", len(told), test.followed)
			}
		})
	}
}
