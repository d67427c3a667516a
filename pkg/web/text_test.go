package web

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func TestVisible(t *testing.T) {
	for given, want := range map[string]string{
		"":                    "",
		"plain_name-1.2/x@y":  "plain_name-1.2/x@y",
		"two\nlines":          "two\nlines",
		"größer 队列 🙂":         "größer 队列 🙂",
		"tab\there":           `tab\u0009here`,
		"null\x00":            `null\u0000`,
		"abc\u202egnp.exe":    `abc\u202egnp.exe`,
		"zero\u200bwidth":     `zero\u200bwidth`,
		"\u2066isolated":      `\u2066isolated`,
		"bad \xff byte":       `bad \ufffd byte`,
		"<script>&\"'</s>":    "<script>&\"'</s>",
		"escape \x1b[31m red": `escape \u001b[31m red`,
	} {
		expect.Same(t, given+" is shown as", want, visible(given))
	}
	long := strings.Repeat("ä", 3000)
	if got := visible(long); got != strings.Repeat("ä", longest)+"…" {
		t.Errorf("%d bytes of %d are shown", len(got), len(long))
	}
	if got := visible(strings.Repeat("a", 3000)); got != strings.Repeat("a", longest)+"…" {
		t.Errorf("%d characters of 3000 are shown", len(got))
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		name   string
		amount resources.Amount
		want   string
	}{
		{"vcore", 0, "0 cores"},
		{"vcore", 1, "0.001 cores"},
		{"vcore", 250, "0.25 cores"},
		{"vcore", 1000, "1 core"},
		{"vcore", 1500, "1.5 cores"},
		{"vcore", 12340, "12.3 cores"},
		{"vcore", 400000, "400 cores"},
		{"vcore", 1234567890, "1,234,567 cores"},
		{"vcore", -2500, "-2.5 cores"},
		{"memory", 0, "0"},
		{"memory", 512, "512 B"},
		{"memory", 1 << 10, "1 KiB"},
		{"memory", 1000, "0.977 KiB"},
		{"memory", 3 << 29, "1.5 GiB"},
		{"memory", 1023 << 20, "0.999 GiB"},
		{"memory", 100 << 40, "100 TiB"},
		{"memory", -1 << 30, "-1 GiB"},
		{"memory", math.MaxInt64, "8 EiB"},
		{"hugepages-2Mi", 4 << 20, "4 MiB"},
		{"ephemeral-storage", 200 << 30, "200 GiB"},
		{"pods", 110000, "110,000"},
		{"nvidia.com/gpu", 8, "8"},
		{"nvidia.com/gpu", math.MinInt64, "-9,223,372,036,854,775,808"},
	} {
		expect.Same(t, fmt.Sprintf("%d of %s", c.amount, c.name), c.want, quantity(c.name, c.amount))
	}
}

func TestAmounts(t *testing.T) {
	v := resources.VectorOf(
		resources.Entry{Name: "pods", Amount: 1}, resources.Entry{Name: "memory", Amount: 2 << 30},
		resources.Entry{Name: "gpu", Amount: 1}, resources.Entry{Name: "vcore", Amount: 1500},
	)
	expect.Same(t, "amounts", "1.5 cores, 2 GiB memory, 1 gpu, 1 pod", amounts(v))
	expect.Same(t, "nothing", "nothing", amounts(resources.Vector{}))
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Minute: "0 s", 0: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s", 59 * time.Minute: "59 min",
		time.Hour: "1 h 0 min", 25*time.Hour + time.Minute: "1 d 1 h", 100 * 24 * time.Hour: "100 d",
	} {
		expect.Same(t, fmt.Sprint(ago)+" ago", want, age(now, now.Add(-ago)))
	}
	expect.Same(t, "no time", "", age(now, time.Time{}))
	expect.Same(t, "no time", (moment{}), at(time.Time{}))
	if got := at(now.In(time.FixedZone("x", 7200))); got.UTC != "2026-01-02 03:04:05 UTC" || got.Machine != "2026-01-02T03:04:05Z" {
		t.Errorf("got %v", got)
	}
}
