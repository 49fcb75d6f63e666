package cmd

import (
	"bytes"
	"io"
	"log"
	"testing"

	"github.com/ingotml/ingot/cmd/cli/clitest"
)

// TestLogIsFiltered checks that the log package writes through the filter.
func TestLogIsFiltered(t *testing.T) {
	var out, errs bytes.Buffer
	before := log.Writer()
	t.Setenv("INGOT_HOME", t.TempDir())
	pipe := readerFunc(func([]byte) (int, error) {
		log.Print(clitest.Foul)
		return 0, io.EOF
	})
	Main([]string{"tokenize", "../testdata/models/demo"}, pipe, &out, &errs)
	clitest.CheckClean(t, "log", errs.String())
	if log.Writer() != before {
		t.Error("the log is not put back")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
