package jsonread

// Number consumes a number and returns its text.
func (r *Reader) Number() ([]byte, error) {
	r.Peek()
	n, end := scanNumber(r.Text[r.Pos:])
	if end > n || n == 0 {
		want := Digit
		if n == 0 {
			want = Value
		}
		r.Pos += end
		return nil, r.Unexpected(want)
	}
	return r.take(n), nil
}

// LongestNumber consumes the longest number that comes next, like Python's json: of "1.x" that is "1". It returns nil
// if there is none.
func (r *Reader) LongestNumber() []byte {
	r.Peek()
	n, _ := scanNumber(r.Text[r.Pos:])
	if n == 0 {
		return nil
	}
	return r.take(n)
}

func (r *Reader) take(n int) []byte {
	r.Pos += n
	return r.Text[r.Pos-n : r.Pos]
}

// scanNumber returns the length of the longest number at the start of s, 0 if there is none. end is where a digit is
// missing, or n.
func scanNumber(s []byte) (n, end int) {
	at := func(i int) byte {
		if i < len(s) {
			return s[i]
		}
		return 0
	}
	digits := func(from int) int {
		for at(from) >= '0' && at(from) <= '9' {
			from++
		}
		return from
	}
	i := 0
	if at(0) == '-' {
		i++
	}
	switch from := i; {
	case at(i) == '0':
		i++
	default:
		if i = digits(i); i == from {
			return 0, i
		}
	}
	n = i
	if at(i) == '.' {
		from := i + 1
		if i = digits(from); i == from {
			return n, i
		}
		n = i
	}
	if c := at(i); c == 'e' || c == 'E' {
		i++
		if c := at(i); c == '+' || c == '-' {
			i++
		}
		from := i
		if i = digits(from); i == from {
			return n, i
		}
		n = i
	}
	return n, n
}
