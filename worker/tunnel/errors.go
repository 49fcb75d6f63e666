package tunnel

import (
	"errors"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// Errors of connections between machines.
var (
	// ErrToken reports that the other end has no token, or another one.
	ErrToken = fault.Register(errors.New("the tokens differ"), fault.Kind{
		Name: "worker/tunnel.ErrToken", Means: "a machine has another token, or somebody in the path relays the connection",
		Rank: fault.Process + 3, Status: fault.Unavailable, Wire: "tunnel token",
		Remedy: "give all machines the same file with --token-file",
	})
	// ErrVersions reports that the other end runs another program or engine.
	ErrVersions = fault.Register(errors.New("the versions differ"), fault.Kind{
		Name: "worker/tunnel.ErrVersions", Means: "a machine has another version of ingot or of the engine",
		Rank: fault.Process + 4, Status: fault.Unavailable, Wire: "tunnel versions",
		Remedy: "install the same version of ingot and of its engine on all machines",
	})
	// ErrPeer reports that the other end does not follow the protocol.
	ErrPeer = errors.New("the other end does not speak the protocol of ingot's workers")
	// ErrRefused reports that the other end refused a request. Its reason is in the message.
	ErrRefused = errors.New("refused")
)
