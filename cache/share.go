package cache

import (
	"errors"
	"fmt"
)

// ErrUnsupported reports an operation on a sequence's state that its layers do not support.
var ErrUnsupported = errors.New("the model's layers cannot do that")

// CanResume reports whether the sequence can continue with a token at a position, as after [Sequence.Rewind]. The
// caller must know that the tokens before it match.
func (s *Sequence) CanResume(position int) bool {
	for _, l := range s.Layers {
		if l != nil && !l.CanRewind(position) {
			return false
		}
	}
	return true
}

// CopyPrefix makes the sequence a copy of the first n tokens of another of the same model and frees its old state. If a
// layer of the other cannot rewind to n, the error is ErrUnsupported and the sequence is empty.
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
		if c, ok := l.(interface{ snapshot(from, to int) *Snapshot }); ok {
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

// Remove removes the tokens [begin, end); end is clipped to the sequence's end. Keys depend on their positions, so
// tokens cannot be removed from the middle. In that case, or if a layer cannot rewind to begin, the error is
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
