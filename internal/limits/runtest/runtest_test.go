package runtest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test whose end is recorded.
type recorder struct {
	testing.TB
	ended string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.end("fail: ", format, args) }

func (r *recorder) Skipf(format string, args ...any) { r.end("skip: ", format, args) }

func (r *recorder) end(how, format string, args []any) {
	r.ended = how + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs a test and returns how it ended, or "" if it ran to its end.
func outcome(t *testing.T, test func(t testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.ended
}

func TestSwitches(t *testing.T) {
	missing := errors.New("no tmux")
	need := func(err error) func(testing.TB) { return func(t testing.TB) { Terminal.Need(t, err) } }
	t.Setenv(string(Terminal), "")
	if got := outcome(t, need(missing)); !strings.HasPrefix(got, "skip: no tmux") || !strings.Contains(got, "TMUX=1") {
		t.Errorf("without the switch: %q", got)
	}
	if got := outcome(t, Terminal.Only); !strings.HasPrefix(got, "skip: ") || !strings.Contains(got, "INGOT_TEST_TMUX=1") {
		t.Errorf("without the switch: %q", got)
	}
	t.Setenv(string(Terminal), "1")
	if got := outcome(t, need(missing)); got != "fail: INGOT_TEST_TMUX is set, but no tmux" {
		t.Errorf("with the switch: %q", got)
	}
	if got := outcome(t, need(nil)) + outcome(t, Terminal.Only); got != "" {
		t.Errorf("nothing is missing: %q", got)
	}
}

func TestPick(t *testing.T) {
	t.Setenv(string(LongRun), "")
	if Long() || Pick(1, 2) != 1 {
		t.Error("a short run takes the long form")
	}
	t.Setenv(string(LongRun), "1")
	if !Long() || Pick(1, 2) != 2 {
		t.Error("a long run takes the short form")
	}
}
