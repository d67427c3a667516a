package process

import "github.com/paddock-scheduler/paddock/pkg/queues/store"

// podGroups are the profiles that start PodGroups as a whole, and what has to be
// done once for the first of them that is managed.
type podGroups struct {
	profiles []string
	follow   func(*store.Store)
	done     bool
}

// FollowPodGroups notes that a profile starts PodGroups as a whole. If it is managed
// the store is told that their label means something, and follow is called, once for
// all profiles, to tell it of PodGroups. Plugins are made in any order: follow may
// be called before FollowPodGroups returns or later.
func (p *Process) FollowPodGroups(profile string, follow func(*store.Store)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.podGroups.profiles = append(p.podGroups.profiles, profile)
	p.podGroups.follow = follow
	p.applyPodGroups()
}

// applyPodGroups does so once it is known which profiles are managed. The caller
// holds p.mu.
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

// applyToStore tells a new store what plugins have said before it was made. The
// caller holds p.mu.
func (p *Process) applyToStore() {
	p.applyPreemption()
	p.applyPodGroups()
}
