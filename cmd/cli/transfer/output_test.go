package transfer

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/clitest"
	"github.com/ingotml/ingot/registry"
)

// TestProgressIsClean checks that blob names and errors are clean in progress lines, which bypass the filter.
func TestProgressIsClean(t *testing.T) {
	var b bytes.Buffer
	now := time.Now()
	s := &cli.Screen{To: &b, Size: func() (int, int) { return 300, 50 }}
	p := newProgress(&b, "pull", cli.OnTerminal, s, func() time.Time { return now })
	p.Set(registry.Event{Kind: registry.Plan, Total: 200})
	p.Set(blob(registry.Begin, clitest.Foul, 0, 200))
	e := blob(registry.Retry, clitest.Foul, 0, 0)
	e.Err = fmt.Errorf("again: %s", clitest.Foul)
	p.Set(e)
	p.Set(registry.Event{Kind: registry.Warned, Name: clitest.Foul, Err: e.Err})
	p.draw()
	s.Draw(clitest.Foul)
	s.Clear()
	drawn := regexp.MustCompile(`\x1b\[[0-9]*A|\x1b\[K|\x1b\[J|\r`).ReplaceAllString(b.String(), "")
	clitest.CheckClean(t, "progress", drawn)
	if strings.Contains(drawn, "\nforged") {
		t.Errorf("a line is forged: %q", drawn)
	}
}
