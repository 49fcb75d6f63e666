package registrytest

import (
	"io"
	"log"
	"strings"
	"testing"
)

func CheckNoSecrets(t *testing.T, err error, secrets ...string) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is not one line", err)
		return
	}
	for _, s := range secrets {
		if strings.Contains(err.Error(), s) {
			t.Errorf("error %q contains %q", err, s)
		}
	}
}

// Quiet returns a logger that discards everything, for servers whose clients break connections.
func Quiet() *log.Logger { return log.New(io.Discard, "", 0) }
