package cache

import (
	"errors"
	"fmt"
)

// ErrUnsupported says that the layers of a model cannot do what was asked of a sequence's state.
var ErrUnsupported = errors.New("the model's layers cannot do that")

// CanResume reports whether the sequence can go on with a token at a position, as [Sequence.Rewind] makes it. That the
// tokens before it are the wanted ones is the caller's to know.
func (s *Sequence) CanResume(position int) bool {
	for _, l := range s.Layers {
		if l != nil && !l.CanRewind(position) {
			return false
		}
	}
	return true
}

// CopyPrefix makes the sequence a copy of the first n tokens of another of the same model; what it had is freed. Where a
// layer of the other cannot go back to n the error is ErrUnsupported, and the sequence is empty.
func (s *Sequence) CopyPrefix(src *Sequence, n int) error {
	if !src.CanResume(n) {
		s.Free()
		return fmt.Errorf("copying the first %d of %d tokens: %w", n, src.Offset(), ErrUnsupported)
	}
	if s == src {
		s.Rewind(n)
		return nil
	}
	s.Free()
	if n == 0 {
		return nil
	}
	for i, l := range src.Layers {
		if l == nil {
			continue
		}
		var copied *Snapshot
		if c, ok := l.(*KV); ok {
			copied = c.snapshot(0, n)
		} else {
			copied = l.Snapshot(0)
		}
		restored := s.Layers[i].Restore(copied, n)
		copied.Close()
		if !restored {
			s.Free()
			return fmt.Errorf("copying the first %d of %d tokens to layer %d: %w", n, src.Offset(), i, ErrUnsupported)
		}
	}
	return nil
}

// Remove takes the tokens [begin, end) out of the sequence; an end past its own is its end. Keys are stored at their
// positions, so nothing is taken out of the middle: then, and where a layer cannot go back to begin, the error is
// ErrUnsupported and the sequence is empty.
func (s *Sequence) Remove(begin, end int) error {
	n := s.Offset()
	switch {
	case 0 <= begin && begin <= end && (begin == end || begin >= n):
		return nil
	case 0 <= begin && begin < end && end >= n && s.Rewind(begin):
		return nil
	}
	s.Free()
	return fmt.Errorf("removing the tokens [%d, %d) of %d: %w", begin, end, n, ErrUnsupported)
}
