package placement

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxNamePart = 64 // characters of one part of a path
	// maxDepth bounds the levels of a path. Labels cannot be that long;
	// annotations can, and each level of a created queue costs memory.
	maxDepth = 64
)

// dotReplacement stands for a dot in a name that becomes one part of a path.
const dotReplacement = "_dot_"

func escapeDots(name string) string { return strings.ReplaceAll(name, ".", dotReplacement) }

// qualified tells whether a name is a full path.
func qualified(name string) bool { return strings.HasPrefix(name, RootQueue+".") }

// checkPath returns an error when a full path breaks the rules for queue names.
func checkPath(path string) error {
	if depth := strings.Count(path, ".") + 1; depth > maxDepth {
		return fmt.Errorf("it has %d levels, more than %d", depth, maxDepth)
	}
	for part := range strings.SplitSeq(path, ".") {
		if part == "" {
			return errors.New("a part between dots is empty")
		}
		if len(part) > maxNamePart {
			return fmt.Errorf("part %s is longer than %d characters", quote(part), maxNamePart)
		}
		if i := strings.IndexFunc(part, func(r rune) bool { return !allowedInName(r) }); i >= 0 {
			return fmt.Errorf("part %s has a character other than letters, digits and - _ # @ / :", quote(part))
		}
	}
	return nil
}

func allowedInName(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_#@/:", r)
}
