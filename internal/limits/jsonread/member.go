package jsonread

// Member returns the text of a member of the object in text, without building the others: nil if there is none, and the
// last of several. The whole text must be valid.
func Member(text []byte, key string, o Options) (value []byte, err error) {
	r := New(text, o)
	err = r.Object(func(name []byte) error {
		wanted := string(name) == key
		r.Peek()
		start := r.Pos
		if err := r.Skip(); err != nil {
			return err
		}
		if wanted {
			value = text[start:r.Pos]
		}
		return nil
	})
	if err == nil {
		err = r.End()
	}
	return value, err
}
