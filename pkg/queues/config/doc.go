// Package config reads queues.yaml, the queue configuration in YuniKorn's
// format, into a [Spec], or says everything that is wrong with it.
//
// [Parse] works in four steps, each of which goes on where it can, so that an
// administrator sees the complete list of errors, with lines, at the first try:
//
//  1. document.go reads the text as YAML nodes, which know their lines, and
//     refuses what YAML itself does not allow;
//  2. fields.go and decode*.go turn nodes into raw values (raw.go): unknown and duplicate
//     keys, wrong types, quantities (package quantity) and access lists (acl.go);
//  3. structure.go, names.go, quotas.go, applications.go, limits.go,
//     limittree.go, rules.go, filters.go and rulepath.go check the rules; a value
//     that could not be read takes part in no comparison, so one slip of the pen
//     gives one error;
//  4. build.go and properties.go resolve inheritance and defaults.
//
// What is accepted but not acted upon is named in [Spec.Warnings], never
// swallowed.
//
// Beside it: [Default] is the configuration without a document, [FromConfigMaps]
// finds the document in the two ConfigMaps, and [Diff] says in words what a reload changes.
//
// Where we read a rule more strictly or more kindly than YuniKorn:
//
//   - a limit of a user or group is compared with all ancestors, also past an
//     ancestor that has limits for others only;
//   - maxapplications of root is in force after a reload as well;
//   - names in an access list that cannot be names give a warning;
//   - queues nest at most [MaxDepth] levels, and a document has at most
//     [MaxDocumentBytes] bytes, and only so much may be made of it (problem.go);
//   - a fixed rule places at most one level below the deepest queue there may be.
//
// The package has no clock, no lock and no client; all results depend on the
// arguments only.
package config
