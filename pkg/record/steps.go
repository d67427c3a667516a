package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// add records a step.
func (r *Record) add(s *output.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s.Kind {
	case output.StepRefused:
		r.refuse(s)
	case output.StepHeld:
		r.hold(s)
	case output.StepTakenUp:
		r.takeUp(s)
	case output.StepCommitted, output.StepVictimsDeleted, output.StepAborted:
		r.stage(s, s.Kind.String())
	case output.StepLost:
		r.lose(s)
	case output.StepEnded:
		r.end(s)
	}
}

// refuse records a refusal, in the place of the same one before it.
func (r *Record) refuse(s *output.Step) {
	d := DecisionOf(s)
	if last := r.decisions[r.latest[s.UID]]; last != nil && last.Outcome == planner.Refuse && last.Reason == d.Reason && last.Node == d.Node {
		d.ID, d.Time, d.Times = last.ID, last.Time, last.Times+1
	} else {
		r.refused++
		d.ID = fmt.Sprintf("%s-refused-%d", s.UID, r.refused)
	}
	r.put(&r.refusals, d)
}

// hold records a decision by which a node is held. One that adds no victim is the same
// decision, made again.
func (r *Record) hold(s *output.Step) {
	d := DecisionOf(s)
	old := r.decisions[d.ID]
	switch {
	case old == nil:
		d.Stages = []Stage{{Stage: s.Kind.String(), Time: s.At}}
		r.put(&r.held, d)
	case len(d.Victims) == 0 && len(old.Victims) > 0: // it goes on as decided
		d = old
	default:
		d.Time, d.Times, d.Stages, d.TakenUp = old.Time, old.Times+1, old.Stages, false
		r.put(&r.held, d)
	}
	r.latest[s.UID], r.current[s.UID] = d.ID, d.ID
}

// takeUp records the hold of an earlier process, which may name no decision.
func (r *Record) takeUp(s *output.Step) {
	id := cmp.Or(s.Hold.Decision, string(s.UID))
	d := r.decisions[id]
	if d == nil {
		d = DecisionOf(s)
		d.ID, d.TakenUp = id, true
		for _, uid := range s.Hold.Chosen {
			d.Victims = append(d.Victims, Victim{Ref: objects.Ref{UID: uid}})
		}
		r.put(&r.held, d)
	}
	r.latest[s.UID], r.current[s.UID] = d.ID, d.ID
	r.stage(s, s.Kind.String())
}

// lose records that room was lost: of the hold that goes on, or, where it is over, of the
// latest decision.
func (r *Record) lose(s *output.Step) {
	r.addStage(cmp.Or(r.decisions[r.current[s.UID]], r.decisions[r.latest[s.UID]]), s, s.Kind.String())
}

// stage adds a stage to the decision that a hold is from.
func (r *Record) stage(s *output.Step, name string) {
	r.addStage(r.decisions[r.current[s.UID]], s, name)
}

func (r *Record) addStage(old *Decision, s *output.Step, name string) {
	if old == nil {
		return
	}
	d := *old
	stage := Stage{Stage: name, Time: s.At}
	if s.Kind != output.StepTakenUp {
		stage.Reason, stage.Message = s.Reason.Code, s.Reason.Text
	}
	d.Stages = append(slices.Clone(old.Stages), stage)
	if s.Kind == output.StepCommitted {
		d.name(s.Going)
	}
	r.decisions[d.ID] = &d
}

// name completes what is known of victims: of those of an earlier process nothing
// was but their UID.
func (d *Decision) name(going []output.Victim) {
	d.Victims = slices.Clone(d.Victims)
	for _, g := range going {
		for i := range d.Victims {
			if v := &d.Victims[i]; v.UID == g.UID {
				v.Ref, v.Queue, v.Node, v.Note = g.Ref, g.Queue, g.Node, g.Note
			}
		}
	}
}

// end records that a hold is over.
func (r *Record) end(s *output.Step) {
	r.stage(s, string(s.Ended))
	r.ended = append(r.ended, EndedHold{
		Asker: s.Ref, Queue: s.Queue, Node: s.Hold.Node, Kind: KindOf(s.Hold.NodeBound), Since: s.Hold.Since, Ended: s.At,
		End: s.Ended, Reason: s.Reason.Code, Message: s.Reason.Text, Decision: s.Hold.Decision,
	})
	r.ended = r.ended[max(0, len(r.ended)-r.most):]
	delete(r.current, s.UID)
}

// put makes a decision the last of a list, where it may be already. Where there are more than
// most, the first is forgotten.
func (r *Record) put(in *[]string, d *Decision) {
	r.decisions[d.ID], r.latest[d.Asker.UID] = d, d.ID
	*in = append(slices.DeleteFunc(*in, func(id string) bool { return id == d.ID }), d.ID)
	if len(*in) <= r.most {
		return
	}
	old := r.decisions[(*in)[0]]
	*in = (*in)[1:]
	delete(r.decisions, old.ID)
	if r.latest[old.Asker.UID] == old.ID {
		delete(r.latest, old.Asker.UID)
	}
}
