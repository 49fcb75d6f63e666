package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
)

// clockedProgress is progress with a clock that the test controls.
type clockedProgress struct {
	*Progress
	clock time.Time
}

func (s *clockedProgress) after(d time.Duration) *clockedProgress { s.clock = s.clock.Add(d); return s }

func newClocked(to *terminaltest.Screen, verb string) *clockedProgress {
	s := &clockedProgress{clock: time.Unix(1000, 0)}
	s.Progress = newProgress(to, verb, cli.OnTerminal, &cli.Screen{To: to, Size: to.Size},
		func() time.Time { return s.clock })
	return s
}

func (s *clockedProgress) events(list ...registry.Event) {
	for _, e := range list {
		s.Set(e)
	}
}

func blob(kind registry.EventKind, name string, bytes, total int64) registry.Event {
	return registry.Event{Kind: kind, Name: name, Digest: digest.FromString(name), Bytes: bytes, Total: total}
}

func check(t *testing.T, v *terminaltest.Screen, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), v.Text()); diff != "" {
		t.Errorf("the screen differs (- wanted, + shown):\n%s", diff)
	}
}

func TestTransferOnTerminal(t *testing.T) {
	v := terminaltest.New(t, 100, 24)
	fmt.Fprintln(v, "$ ingot push x")
	s := newClocked(v, "push")
	s.draw()
	check(t, v, "$ ingot push x\n") // the total is not known yet
	s.events(registry.Event{Kind: registry.Plan, Total: 100e6}, blob(registry.Present, "old", 0, 20e6),
		blob(registry.Begin, "model.embed_tokens.weight", 0, 50e6), blob(registry.Begin, "lm_head.weight", 10e6, 30e6))
	s.after(time.Second).events(blob(registry.Moved, "model.embed_tokens.weight", 25e6, 50e6),
		blob(registry.Moved, "lm_head.weight", 15e6, 30e6))
	s.draw()
	check(t, v, `
$ ingot push x
model.embed_tokens.weight  [==========          ]  50%     25 MB of 50 MB    25 MB/s
lm_head.weight             [==========          ]  50%     15 MB of 30 MB   5.0 MB/s
[============        ]  pushing 60 MB of 100 MB, 30 MB/s, 1s left
`)
	retry := blob(registry.Retry, "lm_head.weight", 0, 30e6)
	retry.Err = errors.New("connection reset\x1b[2J by peer")
	s.after(time.Second).events(retry, retry, blob(registry.Done, "model.embed_tokens.weight", 50e6, 50e6))
	s.draw()
	check(t, v, `
$ ingot push x
retrying lm_head.weight: connection reset\u001b[2J by peer
lm_head.weight  [==========          ]  50%     15 MB of 30 MB   retrying
[=================   ]  pushing 85 MB of 100 MB, 15 MB/s, 1s left
`)
	s.events(blob(registry.Done, "lm_head.weight", 30e6, 30e6))
	s.End()
	s.End()
	s.events(blob(registry.Begin, "late", 0, 1))
	s.draw()
	check(t, v, `
$ ingot push x
retrying lm_head.weight: connection reset\u001b[2J by peer
pushed 70 MB in 2s, 15 MB/s; 10 MB transferred by an earlier run; 20 MB already in the registry
`)
}

// TestTransferKeepsLines checks that a finished blob leaves its line to the next one, so that the other blobs keep
// their lines.
func TestTransferKeepsLines(t *testing.T) {
	v := terminaltest.New(t, 40, 24)
	s := newClocked(v, "pull")
	s.events(registry.Event{Kind: registry.Plan, Total: 400}, blob(registry.Begin, "a", 0, 100),
		blob(registry.Begin, "b", 0, 100))
	s.draw()
	s.events(blob(registry.Done, "a", 100, 100), blob(registry.Begin, "c", 0, 100), blob(registry.Begin, "d", 0, 100))
	s.draw()
	check(t, v, `
c    0%
b    0%
d    0%
pulling 100 B of 400 B, 0 B/s
`)
	s.End() // a failed operation leaves no summary and no lines
	check(t, v, "\n\n")
}

// TestTransferFitsTerminal checks that no line wraps and that the lines fit the terminal, also when its size changes.
func TestTransferFitsTerminal(t *testing.T) {
	v := terminaltest.New(t, 30, 5)
	s := newClocked(v, "pull")
	s.events(registry.Event{Kind: registry.Plan, Total: 1000})
	for i := range 9 {
		s.events(blob(registry.Begin, fmt.Sprintf("model.layers.%d.mlp.down_proj.weight", i), 0, 100))
	}
	for range 3 {
		s.draw()
	}
	check(t, v, `
model.l..wn_proj.weight    0%
model.l..wn_proj.weight    0%
model.l..wn_proj.weight    0%
pulling 0 B of 1.0 kB, 0 B/s
`)
	s.End()
	check(t, v, "\n\n")
}

func TestTransferAsLines(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(1000, 0)
	p := newProgress(&out, "pull", cli.PlainLines, nil, func() time.Time { return clock })
	p.Set(registry.Event{Kind: registry.Plan, Total: 3000})
	p.Set(blob(registry.Begin, "a", 0, 2000))
	clock = clock.Add(2 * time.Second)
	p.Set(blob(registry.Moved, "a", 1000, 2000))
	retry := blob(registry.Retry, "a", 0, 2000)
	retry.Err = errors.New("EOF")
	p.Set(retry)
	p.draw()
	p.Set(blob(registry.Done, "a", 2000, 2000))
	p.Set(blob(registry.Skipped, "draft", 0, 1000))
	p.End()
	want := `retrying a: EOF
pulling 1.0 kB of 3.0 kB, 500 B/s, 4s left
pulled 2.0 kB in 2s, 500 B/s; 1.0 kB left out
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTransferNothingToDo(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "pull", cli.PlainLines, nil, time.Now)
	p.Set(registry.Event{Kind: registry.Plan, Total: 3000})
	p.Set(blob(registry.Present, "a", 0, 3000))
	p.End()
	if got, want := out.String(), "nothing to pull; 3.0 kB already in the store\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTransferForPrograms(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(1000, 0)
	p := newProgress(&out, "push", cli.JSONLines, nil, func() time.Time { return clock })
	p.Set(registry.Event{Kind: registry.Plan, Total: 3000})
	p.Set(blob(registry.Begin, "a", 500, 2000))
	clock = clock.Add(time.Second)
	p.Set(blob(registry.Moved, "a", 1500, 2000))
	p.draw()
	retry := blob(registry.Retry, "a", 0, 0)
	retry.Err = errors.New("EOF")
	p.Set(retry)
	p.Set(blob(registry.Done, "a", 2000, 2000))
	p.Set(blob(registry.Mounted, "b", 0, 1000))
	p.End()
	type line = map[string]any
	var got []line
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	a, b := digest.FromString("a").String(), digest.FromString("b").String()
	want := []line{
		{"event": "plan", "bytes": 0., "total_bytes": 3000.},
		{"event": "begin", "digest": a, "name": "a", "bytes": 500., "total_bytes": 2000.},
		{"event": "progress", "bytes": 1500., "total_bytes": 3000., "blobs": 0., "active": 1.,
			"bytes_per_second": 1000., "seconds_left": 2.},
		{"event": "retry", "digest": a, "name": "a", "bytes": 1500., "total_bytes": 2000., "error": "EOF"},
		{"event": "done", "digest": a, "name": "a", "bytes": 2000., "total_bytes": 2000.},
		{"event": "mounted", "digest": b, "name": "b", "bytes": 1000., "total_bytes": 1000.},
		{"event": "end", "blobs": 2., "moved_bytes": 1500., "resumed_bytes": 500., "present_bytes": 0.,
			"mounted_bytes": 1000., "skipped_bytes": 0., "seconds": 1., "bytes_per_second": 1000.},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTransferQuiet(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&cli.App{Err: terminal.Notes(&out), Quiet: true}, "push", true)
	p.Set(registry.Event{Kind: registry.Plan, Total: 1})
	p.Set(blob(registry.Done, "a", 1, 1))
	p.draw()
	p.End()
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

// TestMeter checks that the rate covers the last seconds, during and after a stall.
func TestMeter(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	m := newMeter(at(0))
	if got := m.rate(at(100)); got != 0 {
		t.Errorf("at the start: %g", got)
	}
	for ms := 100; ms <= 20000; ms += 100 {
		m.add(at(ms), 1000)
	}
	if got := m.rate(at(20000)); got < 9000 || got > 11000 {
		t.Errorf("a steady 10 kB/s is %g", got)
	}
	if got := m.rate(at(40000)); got != 0 {
		t.Errorf("20 seconds into a stall it is %g", got)
	}
	for ms := 40100; ms <= 48000; ms += 100 {
		m.add(at(ms), 5000)
	}
	if got := m.rate(at(48000)); got < 45000 || got > 55000 {
		t.Errorf("50 kB/s after the stall are %g", got)
	}
	if len(m.marks) > 40 {
		t.Errorf("it keeps %d marks", len(m.marks))
	}
}

// TestTransferPaused: the line shows the wait for a registry that limits requests, also before the plan; elsewhere it
// is a line or an event of its own.
func TestTransferPaused(t *testing.T) {
	pause := registry.Event{Kind: registry.Paused, Name: "registry.example.com", Wait: 40 * time.Second}
	v := terminaltest.New(t, 100, 24)
	s := newClocked(v, "push")
	s.events(pause)
	s.after(2 * time.Second).draw()
	check(t, v, "\nwaiting 38s: the registry limits requests\n")
	retry := blob(registry.Retry, "a.weight", 0, 50e6)
	retry.Err = errors.New("429 Too Many Requests")
	s.events(registry.Event{Kind: registry.Plan, Total: 50e6}, blob(registry.Begin, "a.weight", 25e6, 50e6), retry)
	s.after(18 * time.Second).draw()
	check(t, v, `
a.weight  [==========          ]  50%     25 MB of 50 MB   retrying
[==========          ]  pushing 25 MB of 50 MB, waiting 20s: the registry limits requests
`)
	s.after(21 * time.Second).draw()
	check(t, v, `
a.weight  [==========          ]  50%     25 MB of 50 MB   retrying
[==========          ]  pushing 25 MB of 50 MB, 0 B/s
`)
	for style, want := range map[cli.Style]string{
		cli.PlainLines: "waiting 40s: the registry limits requests (registry.example.com)\n",
		cli.JSONLines:  `{"event":"paused","name":"registry.example.com","bytes":0,"total_bytes":0,"seconds":40}` + "\n",
		cli.NoProgress: "",
	} {
		var b bytes.Buffer
		newProgress(&b, "push", style, nil, time.Now).Set(pause)
		if b.String() != want {
			t.Errorf("%d: %q, want %q", style, b.String(), want)
		}
	}
}
