package runtime

import (
	"fmt"
	"time"
)

// Pin protects the state of a prompt's beginning from eviction for a while: the prefix cache evicts it after other
// entries. It is a wish: memory that running requests need is never refused because of it.
type Pin struct {
	Tokens int           // of the prompt, from its start
	TTL    time.Duration // after the request's end
}

// MaxPinTTL bounds the TTL of a pin.
const MaxPinTTL = 24 * time.Hour

// CheckPins returns an error for a pin outside the prompt, or with a TTL outside its range.
func (r *Request) CheckPins() error {
	for _, p := range r.Pins {
		if p.Tokens < 0 || p.Tokens > len(r.Prompt) {
			return fmt.Errorf("a pin of %d tokens: the prompt has %d: %w", p.Tokens, len(r.Prompt), ErrPrompt)
		}
		if p.TTL <= 0 || p.TTL > MaxPinTTL {
			return fmt.Errorf("the TTL of a pin is %v: must be positive, and at most %v: %w", p.TTL, MaxPinTTL, ErrPrompt)
		}
	}
	return nil
}
