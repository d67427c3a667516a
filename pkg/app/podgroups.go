package app

import "github.com/paddock-scheduler/paddock/pkg/store"

// podGroups are the profiles that start PodGroups as a whole, and what must be done once
// for the first managed one.
type podGroups struct {
	profiles []string
	follow   func(*store.Store)
	done     bool
}

// FollowPodGroups records that a profile starts PodGroups as a whole. If the profile is
// managed, the store is told to use the PodGroup label, and follow is called, once for
// all profiles, to pass it PodGroups. Plugins are made in any order: follow may be called
// before FollowPodGroups returns or later.
func (p *Process) FollowPodGroups(profile string, follow func(*store.Store)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.podGroups.profiles = append(p.podGroups.profiles, profile)
	p.podGroups.follow = follow
	p.applyPodGroups()
}

// applyPodGroups tells the store to use the PodGroup label and calls follow, once, if a
// recorded profile is managed. The caller holds p.mu.
func (p *Process) applyPodGroups() {
	s := p.Store()
	if s == nil || p.podGroups.done {
		return
	}
	for _, profile := range p.podGroups.profiles {
		if p.Managed(profile) {
			p.podGroups.done = true
			s.FollowPodGroups()
			p.podGroups.follow(s)
			return
		}
	}
}
