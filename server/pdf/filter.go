package pdf

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"io"

	"golang.org/x/image/tiff/lzw"
)

// decode returns a stream's decoded data. It keeps memory for them, which the caller may release. A stream of a picture
// has none. Data that end early are what there is.
func (f *file) decode(s *stream) []byte {
	data := s.data
	if f.crypt != nil && !plainStream(s.dict) && f.w.spend(len(data)) {
		data = f.crypt.stream(s.ref, data)
	}
	filters, params := f.list(s.dict, "Filter", "F"), f.list(s.dict, "DecodeParms", "DP")
	for i, filter := range filters {
		var param dict
		if i < len(params) {
			param, _ = f.get(params[i]).(dict)
		}
		kind, _ := f.get(filter).(name)
		next, ok := f.filter(kind, param, data)
		if i > 0 {
			f.w.release(len(data))
		}
		if data = next; !ok || f.w.err != nil {
			return nil
		}
	}
	if len(filters) == 0 {
		if !f.w.spend(len(data)) || !f.w.keep(len(data)) {
			return nil
		}
	}
	return data
}

// list returns a value, or the values of a list, under either of two keys.
func (f *file) list(d dict, key, short name) array {
	o := f.get(d[key])
	if o == nil {
		o = f.get(d[short])
	}
	switch o := o.(type) {
	case nil:
		return nil
	case array:
		const most = 8
		return o[:min(len(o), most)]
	}
	return array{o}
}

// filter decodes data. It returns false for a filter of pictures.
func (f *file) filter(kind name, param dict, data []byte) ([]byte, bool) {
	var r io.Reader
	switch kind {
	case "FlateDecode", "Fl":
		if len(data) < 2 {
			return nil, true
		}
		r = flate.NewReader(bytes.NewReader(data[2:])) // without its header; the checksum is often wrong
	case "LZWDecode", "LZW":
		r = lzw.NewReader(bytes.NewReader(data), lzw.MSB, 8)
	case "ASCII85Decode", "A85":
		r = ascii85.NewDecoder(bytes.NewReader(plain85(data)))
	case "ASCIIHexDecode", "AHx":
		l := &lexer{b: append([]byte("<"), data...), w: f.w}
		r = bytes.NewReader([]byte(l.hex()))
	case "RunLengthDecode", "RL":
		r = &runLengths{b: data}
	case "Crypt":
		r = bytes.NewReader(data)
	default:
		return nil, false
	}
	var b bytes.Buffer
	const part = 16 << 10
	for {
		n, err := io.CopyN(&b, r, part)
		if !f.w.spend(int(n)) || !f.w.keep(int(n)) {
			return nil, true
		}
		if err != nil {
			break
		}
	}
	out := unpredict(b.Bytes(), f, param)
	f.w.release(b.Len() - len(out))
	return out, true
}

// plain85 removes what the decoder does not take: the marks around the data.
func plain85(data []byte) []byte {
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<~"))
	if i := bytes.IndexByte(data, '~'); i >= 0 {
		data = data[:i]
	}
	return data
}

// runLengths decodes runs: a byte below 128 stands before as many bytes and one, a byte above it before one that is
// repeated.
type runLengths struct {
	b    []byte
	rest []byte
}

func (r *runLengths) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if len(r.b) < 2 || r.b[0] == 128 {
			return 0, io.EOF
		}
		if n := int(r.b[0]); n < 128 {
			n = min(n+1, len(r.b)-1)
			r.rest, r.b = r.b[1:1+n], r.b[1+n:]
		} else {
			r.rest, r.b = bytes.Repeat(r.b[1:2], 257-n), r.b[2:]
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// unpredict reverses the prediction of bytes from those before and above. It works in place.
func unpredict(b []byte, f *file, param dict) []byte {
	get := func(key name, otherwise int) int {
		if v, ok := f.get(param[key]).(number); ok && v >= 1 && v < 1<<20 {
			return int(v)
		}
		return otherwise
	}
	predictor := get("Predictor", 1)
	if predictor == 1 {
		return b
	}
	bits := get("Colors", 1) * get("BitsPerComponent", 8)
	step := (bits + 7) / 8 // bytes of a pixel
	row := max(min((get("Columns", 1)*bits+7)/8, len(b)), 1)
	if predictor == 2 {
		for line := b; len(line) >= row && bits == 8*step; line = line[row:] {
			for i := step; i < row; i++ {
				line[i] += line[i-step]
			}
		}
		return b
	}
	out := b[:0]
	above := make([]byte, row)
	for len(b) > 1 {
		kind := b[0]
		line := b[1:min(row+1, len(b))]
		b = b[1+len(line):]
		for i := range line {
			var left, corner byte
			if i >= step {
				left, corner = line[i-step], above[i-step]
			}
			switch up := above[i]; kind {
			case 1:
				line[i] += left
			case 2:
				line[i] += up
			case 3:
				line[i] += byte((int(left) + int(up)) / 2)
			case 4:
				line[i] += paeth(left, up, corner)
			}
		}
		at := len(out)
		out = append(out, line...)
		above = out[at : at+len(line) : at+len(line)]
		if len(line) < row {
			break
		}
	}
	return out
}

// paeth returns the neighbour that is nearest to left + up - corner.
func paeth(left, up, corner byte) byte {
	p := int(left) + int(up) - int(corner)
	a, b, c := distance(p, left), distance(p, up), distance(p, corner)
	switch {
	case a <= b && a <= c:
		return left
	case b <= c:
		return up
	}
	return corner
}

func distance(p int, x byte) int { return max(p-int(x), int(x)-p) }
