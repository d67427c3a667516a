package eventlog

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Type says what a record is about. The numbers of types, changes and details are
// YuniKorn's.
type Type int32

// The types. The object of a record is the UID of a pod, the ID of an application, the
// name of a node, the path of a queue, or the name of a user or group.
const (
	Request Type = iota + 1
	App
	Node
	Queue
	UserGroup
)

// Change says what became of it.
type Change int32

// The changes.
const (
	None Change = iota
	Set
	Add
	Remove
)

// Detail says more.
type Detail int32

// The details that are used here, of those there are.
const (
	NoDetail       Detail = 0
	RequestCancel  Detail = 100
	AppAlloc       Detail = 200
	AppRequest     Detail = 201
	AppReject      Detail = 202
	AppNew         Detail = 203
	AppAccepted    Detail = 204
	AppRunning     Detail = 206
	AppCompleted   Detail = 208
	NodeGone       Detail = 300
	NodeOpen       Detail = 302
	NodeAlloc      Detail = 303
	NodeCapacity   Detail = 304
	NodeHold       Detail = 306
	QueueDynamic   Detail = 401
	QueueType      Detail = 402
	QueueMax       Detail = 403
	QueueGuarantee Detail = 404
	QueueApp       Detail = 405
	AllocCancel    Detail = 500
	AllocPreempt   Detail = 501
	UserLimit      Detail = 600
	GroupLimit     Detail = 601
	AppLink        Detail = 602
	UserResource   Detail = 603
	GroupResource  Detail = 604
)

// maxMessage is how long a message may be, in bytes.
const maxMessage = 1024

// Record is one thing that happened. Immutable.
type Record struct {
	Type   Type
	Change Change
	Detail Detail
	// Nanos is when it happened, in nanoseconds since 1970.
	Nanos int64
	// Object is what it is about, Reference the other party: the UID of a pod for a
	// node or application, the ID of an application for a queue or pod, the path of a
	// queue for a user or group. Empty for none.
	Object, Reference string
	Message           string
	// Amount is how much; empty where that says nothing.
	Amount resources.Vector
}

// short cuts a message, never inside a letter.
func short(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "")
}
