package resources

import "testing"

// The vectors of a benchmark have the four types of an ordinary pod with a device.
var (
	benchUsed  = VectorOf(Entry{CPU, 96_000}, Entry{Memory, 512 << 30}, Entry{Pods, 110}, Entry{"nvidia.com/gpu", 6})
	benchAsk   = VectorOf(Entry{CPU, 2_000}, Entry{Memory, 8 << 30}, Entry{Pods, 1}, Entry{"nvidia.com/gpu", 1})
	benchMax   = LimitOf(Entry{CPU, 128_000}, Entry{Memory, 1 << 40}, Entry{Pods, 250}, Entry{"nvidia.com/gpu", 8})
	benchShare = GuaranteeOf(Entry{CPU, 64_000}, Entry{Memory, 512 << 30}, Entry{Pods, 100}, Entry{"nvidia.com/gpu", 8})
)

func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if benchUsed.Add(benchAsk).Len() != 4 {
			b.Fatal("lost a type")
		}
	}
}

func BenchmarkAllows(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if !benchMax.Allows(benchUsed, benchAsk) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkDominantShare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if (DominantShare(benchUsed, benchShare, benchMax) == Share{}) {
			b.Fatal("no share")
		}
	}
}
