package ollama

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/ingotml/ingot/internal/limits/fault"
	_ "github.com/ingotml/ingot/registry" // registers its errors
	"github.com/ingotml/ingot/server/wire"
)

// An error that ends a pull or a push has the status of the table of package fault; those of the network, 502.
func TestTransfersFollowTheTable(t *testing.T) {
	transfers := 0
	for _, k := range fault.Kinds() {
		err := fmt.Errorf("do it: %w", k.Err)
		got := wire.ErrorOf(transferError(err))
		want, message := wire.ErrorOf(err).Status, wire.ErrorOf(err).Message
		var network net.Error
		switch {
		case k.Transfer != 0:
			transfers++
			want, message = k.Transfer, err.Error()
			if k.Advice != "" {
				message += "; " + k.Advice
			}
		case errors.As(err, &network):
			want = fault.Gateway
		}
		if got.Status != want || got.Message != message {
			t.Errorf("%s: status %d, %q, want %d %q", k.Name, got.Status, got.Message, want, message)
		}
	}
	if transfers < 13 {
		t.Errorf("%d errors have a status in transfers", transfers)
	}
}
