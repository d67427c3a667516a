package store

import "slices"

// originates judges by the definition of an originator: of the living pods of the
// application those that say so, else those that have the role, else those that own
// another, else the oldest of several.
func (p *portrait) originates(m *mirror) bool {
	var living []*mirror
	for i := range p.pods {
		o := &p.pods[i]
		if !o.Foreign && !o.Deleting && p.store.pods[o.UID].app != nil && p.store.pods[o.UID].app == p.store.pods[m.UID].app {
			living = append(living, o)
		}
	}
	if m.Deleting || m.Originator == OriginatorNo {
		return false
	}
	unsaid := func(o *mirror) bool { return o.Originator == OriginatorUnsaid }
	for _, is := range []func(o *mirror) bool{
		func(o *mirror) bool { return o.Originator == OriginatorYes },
		func(o *mirror) bool { return o.Originator == OriginatorByRole },
		func(o *mirror) bool {
			return unsaid(o) && slices.ContainsFunc(living, func(other *mirror) bool { return slices.Contains(other.Owners, o.UID) })
		},
	} {
		if slices.ContainsFunc(living, is) {
			return is(m)
		}
	}
	older := func(o *mirror) bool { return unsaid(o) && o.Created.Unix() < m.Created.Unix() }
	return len(living) > 1 && !slices.ContainsFunc(living, older)
}

// originatesAlone judges a foreign pod: it says so, has the role, or owns another
// living pod.
func (p *portrait) originatesAlone(m *mirror) bool {
	if m.Originator != OriginatorUnsaid {
		return m.Originator != OriginatorNo
	}
	return slices.ContainsFunc(p.pods, func(o mirror) bool {
		return !o.Deleting && slices.Contains(o.Owners, m.UID) && (o.Foreign || p.store.pods[o.UID].app != nil)
	})
}
