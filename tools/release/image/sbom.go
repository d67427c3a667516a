package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// The parts of SPDX 2.3 that are used.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string          `json:"SPDXID"`
		Name             string          `json:"name"`
		Version          string          `json:"versionInfo"`
		FileName         string          `json:"packageFileName,omitempty"`
		Download         string          `json:"downloadLocation"`
		FilesAnalyzed    bool            `json:"filesAnalyzed"`
		Checksums        []spdxChecksum  `json:"checksums,omitempty"`
		SourceInfo       string          `json:"sourceInfo,omitempty"`
		LicenseConcluded string          `json:"licenseConcluded"`
		LicenseDeclared  string          `json:"licenseDeclared"`
		Copyright        string          `json:"copyrightText"`
		References       []spdxReference `json:"externalRefs,omitempty"`
		Purpose          string          `json:"primaryPackagePurpose,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	noAssertion = "NOASSERTION"
	documentID  = "SPDXRef-DOCUMENT"
	programID   = "SPDXRef-program"
	purlPrefix  = "pkg:golang/"
	dependsOn   = "DEPENDS_ON"
)

// SBOM returns the SPDX document of a binary, as JSON: the program, the modules
// the linker says it was made of, replaced ones as what they were replaced by,
// and the standard library. It depends on the binary and m only.
func SBOM(m Meta, b Binary) ([]byte, error) {
	program, err := os.ReadFile(b.Path)
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	sum := sha256.Sum256(program)
	digest := hex.EncodeToString(sum[:])
	doc := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID, Name: m.Name + "-" + m.Version + "-linux-" + b.Arch,
		Namespace: "https://" + b.info.Main.Path + "/spdx/" + m.Name + "/" + digest,
		Creation: spdxCreation{
			Created: m.Created.UTC().Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: paddock-release"},
		},
		Packages: []spdxPackage{{
			ID: programID, Name: b.info.Main.Path, Version: m.Version, FileName: m.Name, Download: noAssertion,
			Checksums: []spdxChecksum{{"SHA256", digest}}, LicenseConcluded: "Apache-2.0", LicenseDeclared: "Apache-2.0",
			Copyright: noAssertion, References: purl(b.info.Main.Path, m.Version), Purpose: "APPLICATION",
		}},
		Relationships: []spdxRelationship{{documentID, "DESCRIBES", programID}},
	}
	standard := &debug.Module{Path: "std", Version: strings.TrimPrefix(b.info.GoVersion, "go")}
	for i, module := range append([]*debug.Module{standard}, b.info.Deps...) {
		doc.add(fmt.Sprintf("SPDXRef-module-%d", i), module)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return append(text, '\n'), nil
}

// add adds a module that the program depends on.
func (d *spdxDocument) add(id string, module *debug.Module) {
	used := module
	if module.Replace != nil && module.Replace.Version != "" { // else it is a directory, which has no name elsewhere
		used = module.Replace
	}
	p := spdxPackage{
		ID: id, Name: used.Path, Version: used.Version, Download: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, Copyright: noAssertion,
		References: purl(used.Path, used.Version), Purpose: "LIBRARY",
	}
	if used.Sum != "" {
		p.SourceInfo = "go.sum " + used.Sum
	}
	if used.Version != "" && module.Path != "std" {
		p.Download = "https://proxy.golang.org/" + escapePath(used.Path) + "/@v/" + escapePath(used.Version) + ".zip"
	}
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{programID, dependsOn, id})
}

func purl(path, version string) []spdxReference {
	locator := purlPrefix + path
	if version != "" {
		locator += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return []spdxReference{{"PACKAGE-MANAGER", "purl", locator}}
}

// escapePath writes a path as the module proxy wants it: an upper-case letter
// becomes ! and the lower-case one.
func escapePath(path string) string {
	var out strings.Builder
	for _, r := range path {
		if 'A' <= r && r <= 'Z' {
			out.WriteByte('!')
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}
