// Package karpenter asks Karpenter's own predicate for which pods it would add nodes. It is
// a module of its own, because Karpenter has other dependencies than the scheduler.
//
// The pods are those of test/framework/testdata/autoscalers.json. The tests of
// test/framework hold that file against what the scheduler writes. A max that is lowered and
// raised is not in it: TestEcosystemKarpenter has that, with Karpenter itself.
package karpenter
