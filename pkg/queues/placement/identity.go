package placement

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// UnknownUser is the user of a pod that names none.
const UnknownUser = "nobody"

// uniqueSuffix ends an application ID that the admission webhook left to us to complete.
const uniqueSuffix = "-uniqueautogen"

const (
	maxGeneratedID     = 63 // length of a label value
	maxNamespaceUnique = 26 // leaves room for "-" and a UID
)

// Pod is what placement reads of a pod.
type Pod struct {
	Namespace, Name, UID string
	Labels, Annotations  map[string]string
}

// Namespace is what placement reads of a namespace.
type Namespace struct {
	Name        string
	Annotations map[string]string
}

// User is the person or account a pod runs for. Groups are in the order given
// and may be empty; the name is never empty in an [Identity].
type User struct {
	Name   string
	Groups []string
}

// Identity says which user and application a pod belongs to, before any queue is looked
// at.
type Identity struct {
	// Application is the application's ID, generated where the pod names none.
	Application string
	// Shared is true when Application was generated for all pods of the namespace that
	// name none: no user chose that these pods belong together.
	Shared bool
	// Queue is the queue as the pod names it, unchecked; empty when it names none.
	Queue string
	User  User
	Gang  Gang
}

// Identify reads a pod's identity from its labels and annotations. The reason is
// InvalidUserInfo or HardGangUnsupported, the former first when both hold. The
// identity is filled as far as possible in any case: with unreadable user
// information the user is the one of the deprecated label, or [UnknownUser].
// With uniqueIDs every pod without an application ID is an application of its
// own, instead of one application per namespace.
func Identify(p Pod, uniqueIDs bool) (Identity, reasons.Reason) {
	user, reason := userOf(p)
	application, shared := applicationOf(p, uniqueIDs)
	id := Identity{
		Application: application,
		Shared:      shared,
		Queue:       shorten(cmp.Or(p.Labels[KeyQueue], p.Annotations[KeyQueue], p.Labels[KeyLegacyQueue]), maxPath),
		User:        user,
		Gang:        gangOf(p.Annotations),
	}
	if reason.None() && id.Gang == GangHard {
		reason = reasons.New(reasons.HardGangUnsupported,
			"the pod asks for gangSchedulingStyle=Hard in annotation %s, which is not offered; use Soft, or remove %s and %s.",
			KeyPolicyParameters, KeyTaskGroups, KeyTaskGroupName)
	}
	return id, reason
}

func applicationOf(p Pod, uniqueIDs bool) (id string, shared bool) {
	id = cmp.Or(p.Labels[KeyApplicationID], p.Annotations[KeyApplicationID],
		p.Labels[KeyLegacyApplicationID], p.Labels[KeySparkSelector])
	switch {
	case strings.HasSuffix(id, uniqueSuffix), id == "" && uniqueIDs:
		// Without a UID (a manifest that was not created yet) the name stands in.
		return cut(cut(p.Namespace, maxNamespaceUnique)+"-"+cmp.Or(p.UID, p.Name), maxGeneratedID), false
	case id == "":
		return cut("yunikorn-"+p.Namespace+"-autogen", maxGeneratedID), true
	}
	return shorten(id, maxName), false
}

func userOf(p Pod) (User, reasons.Reason) {
	fallback := User{Name: cmp.Or(p.Labels[KeyUsername], UnknownUser)}
	text := p.Annotations[KeyUserInfo]
	if text == "" {
		return fallback, reasons.Reason{}
	}
	user, err := parseUserInfo(text)
	if err != nil {
		return fallback, reasons.New(reasons.InvalidUserInfo,
			`annotation %s is %s, but must look like {"user":"name","groups":["group"]}: %v.`,
			KeyUserInfo, quote(text), err)
	}
	return user, reasons.Reason{}
}

func parseUserInfo(text string) (User, error) {
	var info struct {
		User   string   `json:"user"`
		Groups []string `json:"groups"`
	}
	if len(text) > maxUserInfo {
		return User{}, fmt.Errorf("it has %d bytes, more than %d", len(text), maxUserInfo)
	}
	// Unlike a Decoder, Unmarshal refuses anything that follows the object.
	err := json.Unmarshal([]byte(text), &info)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return User{}, fmt.Errorf("field %s must not be a %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return User{}, fmt.Errorf("not readable as JSON: %w", err)
	}
	if info.User == "" {
		return User{}, errors.New("field user is empty")
	}
	user := User{Name: info.User}
	if len(info.User) > maxName {
		return User{}, fmt.Errorf("field user has %d bytes, more than %d", len(info.User), maxName)
	}
	for _, g := range info.Groups {
		if len(g) > maxName {
			return User{}, fmt.Errorf("a name in field groups has %d bytes, more than %d", len(g), maxName)
		}
		if g != "" {
			user.Groups = append(user.Groups, g)
		}
	}
	return user, nil
}

func cut(s string, length int) string { return s[:min(len(s), length)] }

// quote renders text from outside for a sentence: quoted, and shortened where
// an annotation would fill the whole event.
func quote(s string) string {
	s = shorten(s, 120)
	if strings.Contains(s, `"`) && strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

// shorten keeps the beginning of a text; the rest, if any, becomes three dots.
func shorten(s string, longest int) string {
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "..."
}
