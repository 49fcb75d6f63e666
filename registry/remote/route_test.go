package remote

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

// TestManyNamedHosts: a registry that names more hosts than are remembered gets the strictest limit for the others.
func TestManyNamedHosts(t *testing.T) {
	h, err := authClient(t, Options{}).newHost("10.0.0.1:5000") // private: it may lead to private addresses
	if err != nil {
		t.Fatal(err)
	}
	from := &url.URL{Scheme: "https", Host: "10.0.0.1:5000"}
	lead := func(i int) error {
		u := &url.URL{Scheme: "https", Host: fmt.Sprintf("10.1.%d.%d", i/256, i%256)}
		h.recordNaming("redirect", from, u)
		return h.checkLiteral(u)
	}
	for i := range limits.NamedHosts {
		if err := lead(i); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := lead(limits.NamedHosts); !errors.Is(err, ErrPrivateAddress) {
		t.Errorf("one more: %v", err)
	}
	if err := lead(0); err != nil || len(h.named) != limits.NamedHosts {
		t.Errorf("the first host: %v; %d are remembered", err, len(h.named))
	}
}
