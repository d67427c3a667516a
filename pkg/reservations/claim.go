package reservations

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// HeldCondition is the type of the pod condition that carries a Claim: it is
// True while the pod holds a node.
const HeldCondition = "paddock.io/NodeHeld"

// VictimMessage begins the message of DisruptionTarget of each victim of a plan. Upstream's
// preemption writes the same reason with another message.
const VictimMessage = "preempted for "

// OwnVictim ends the message of DisruptionTarget of a victim of a DaemonSet pod of its own:
// the user of that pod may then have caused the victim to leave.
const OwnVictim = "; both are of one namespace or queue"

// Claim is the part of a hold that must survive a restart. It is written on the asker, as
// the message of its HeldCondition, before the first disruption. After a restart it is
// the only source of truth.
type Claim struct {
	Node string `json:"node"`
	// Since is the time at which the hold began.
	Since time.Time `json:"since"`
	// ClearSince is the time at which the last victim was gone. It is zero while any
	// victim is left, and also if the asker was bound before the time was needed.
	ClearSince time.Time `json:"clearSince,omitzero"`
	// Victims are the pods chosen to be preempted, gone or not, sorted.
	Victims []types.UID `json:"victims,omitempty"`
	// Decision identifies the decision that made the hold. It may be empty.
	Decision string `json:"decision,omitempty"`
	// Note says, for people, what a claim without victims waits for. It is not read back.
	Note string `json:"-"`
}

// claimMark separates the sentence for people from the claim.
const claimMark = " Claim: "

// Message renders the claim as the message of the condition: a sentence for
// people, then the claim.
func (c Claim) Message() string {
	text, err := json.Marshal(c)
	if err != nil { // Claim has strings and times only; a year beyond 9999 cannot be encoded
		text = []byte("{}")
	}
	waits := "room is being made for it there."
	switch {
	case len(c.Victims) > 0:
	case c.Note != "":
		waits = c.Note + "."
	default:
		waits = "it fits there once the pods that are leaving are gone."
	}
	return fmt.Sprintf("The pod holds node %s: %s%s%s", c.Node, waits, claimMark, text)
}

// ParseClaim reads a claim from the message of a condition.
func ParseClaim(message string) (Claim, error) {
	at := strings.LastIndex(message, claimMark)
	if at < 0 {
		return Claim{}, fmt.Errorf("condition %s: its message has no claim", HeldCondition)
	}
	var c Claim
	if err := json.Unmarshal([]byte(message[at+len(claimMark):]), &c); err != nil {
		return Claim{}, fmt.Errorf("condition %s: %w", HeldCondition, err)
	}
	if c.Node == "" || c.Since.IsZero() {
		return Claim{}, fmt.Errorf("condition %s: the claim has no node or no beginning", HeldCondition)
	}
	return c, nil
}
