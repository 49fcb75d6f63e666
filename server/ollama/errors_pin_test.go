package ollama

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/wire"
)

var updateErrors = flag.Bool("update-errors", false, "rewrite testdata/errors.golden")

// The status of every error of the module that ends a pull or a push, or a create, is pinned.
func TestErrorsOfTransfersArePinned(t *testing.T) {
	var b strings.Builder
	for _, s := range sentinels {
		err := fmt.Errorf("do it: %w", s.err)
		transfer, create := wire.ErrorOf(transferError(err)), wire.ErrorOf(createError(err, ""))
		fmt.Fprintf(&b, "%s\n\ttransfer: %d %s\n\tcreate: %d %s\n", s.name, transfer.Status, transfer.Message,
			create.Status, create.Message)
	}
	got := b.String()
	const file = "testdata/errors.golden"
	if *updateErrors {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the errors' statuses have changed:\n%s", got)
	}
}
