package batches

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// input reads lines of bounded length.
type input struct {
	r    *bufio.Reader
	max  int
	line int // number of the last line
}

func newInput(r io.Reader, longest int) *input {
	return &input{r: bufio.NewReaderSize(r, 64<<10), max: longest}
}

// errLongLine reports a line that exceeds the limit. The line has been skipped.
var errLongLine = errors.New("the line is too long")

// next returns the next line that is not blank, without its end. It returns io.EOF at the end of the file.
func (in *input) next() ([]byte, error) {
	for {
		text, err := in.read()
		if err != nil || len(bytes.TrimSpace(text)) > 0 {
			return text, err
		}
	}
}

func (in *input) read() ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := in.r.ReadSlice('\n')
		if long = long || len(text)+len(part) > in.max; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil && len(part) == 0 && len(text) == 0 && !long:
			return nil, io.EOF
		}
		in.line++
		if long {
			return nil, errLongLine
		}
		return bytes.TrimSuffix(text, []byte("\n")), nil
	}
}
