package remote

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/registry/address"
)

// Errors for addresses that a client refuses to connect to.
var (
	// ErrPrivateAddress is an address that is less public than the host that named it, or an [ErrPrivateRegistry].
	ErrPrivateAddress = fault.Register(errors.New("address is not public"), fault.Kind{
		Name: "registry/remote.ErrPrivateAddress", Means: "an address is less public than the host that named it",
		Rank: fault.Registry + 9, Transfer: fault.Gateway,
	})
	// ErrPrivateRegistry is a registry at an address that is not public, where [Options.Private] requires a public one.
	ErrPrivateRegistry = errors.New("registry is not public")
)

// addressError is a refused connection to an address. It is an [ErrPrivateAddress].
type addressError struct {
	what    string        // "redirect", "token server" or "upload"; empty for the registry itself
	from    string        // URL that named the address, without query and userinfo
	to      string        // URL of the address, likewise; the registry's name if what is empty
	rebound bool          // the registry's name resolved to an address of class namers before
	namers  address.Class // classes of all hosts that named the address
	class   address.Class // of addr
	addr    netip.Addr
}

func (e *addressError) Error() string {
	by := e.namers
	for c := address.Public; c <= address.Reserved; c <<= 1 {
		if e.namers&c != 0 && !c.MayName(e.class) {
			by = c // the first that may not name it
			break
		}
	}
	addr := e.addr.String()
	if !e.addr.IsValid() {
		addr = "this machine"
	}
	leads := fmt.Sprintf("from a %s to a %s address (%s)", by, e.class, addr)
	if by == address.Public {
		leads = fmt.Sprintf("from a public to a private address (%s is %s)", addr, e.class)
	}
	switch {
	case e.rebound:
		return fmt.Sprintf("registry %s has moved %s", e.to, leads)
	case e.what == "":
		return fmt.Sprintf("registry %s is at a %s address (%s)", e.to, e.class, addr)
	}
	return fmt.Sprintf("%s from %s to %s: it leads %s", e.what, e.from, e.to, leads)
}

func (e *addressError) Is(target error) bool {
	return target == ErrPrivateAddress || target == ErrPrivateRegistry && e.what == "" && !e.rebound
}
