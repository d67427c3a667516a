package reasons_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// notInAFile are the codes that no file of testdata has, each with its test.
var notInAFile = map[reasons.Code]string{
	reasons.ConfigurationInvalid:       "pkg/app TestInvalidAtTheStartOfALeader",
	reasons.ConfigurationUnreadable:    "pkg/app TestConfigMapsThatCannotBeRead",
	reasons.NamespaceAnnotationInvalid: "pkg/app TestInvalidAtTheStartOfALeader",
	reasons.NodeHeld:                   "pkg/plugins/reservation TestFilterKeepsTheNodeForItsHolder",
}

// notShown lists the codes that no text has as a word.
func notShown(codes []reasons.Code, text string) []reasons.Code {
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`[A-Z]\w+`).FindAllString(text, -1) {
		words[word] = true
	}
	return slices.DeleteFunc(slices.Clone(codes), func(c reasons.Code) bool { return words[string(c)] })
}

// TestEveryReasonIsShown: a script or a page of a test has each code, so its conditions
// are met somewhere.
func TestEveryReasonIsShown(t *testing.T) {
	var codes []reasons.Code
	for _, entry := range reasons.Table() {
		codes = append(codes, entry.Code)
	}
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/testdata/") {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		all.Write(text)
		return err
	})
	expect.OK(t, err)
	missing := notShown(codes, all.String())
	for code := range notInAFile {
		missing = slices.DeleteFunc(missing, func(c reasons.Code) bool { return c == code })
	}
	expect.That(t, len(missing) == 0, "no file of testdata has %v", missing)
	expect.Same(t, "a new code is not noticed", []reasons.Code{"New"}, notShown([]reasons.Code{"New", reasons.OverMax}, "OverMax, Newer"))
}
