package prefix

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/mlx"
)

// nodeHeader precedes the snapshots of a node's layers.
type nodeHeader struct {
	Start  int     `json:"start"`
	End    int     `json:"end"`
	Edge   []Key   `json:"edge"`
	Layers []int64 `json:"layers"` // bytes of each layer's snapshot; 0: none
}

// maxNodeHeader suffices for a million keys.
const maxNodeHeader = 32 << 20

// encodeNode returns the input of decodeNode without the leading MAC.
func encodeNode(n *node) []byte {
	header := nodeHeader{Start: n.start(), End: n.end, Edge: n.edge}
	var data []byte
	for _, s := range n.snapshots {
		if s == nil {
			header.Layers = append(header.Layers, 0)
			continue
		}
		b := s.Encode()
		header.Layers = append(header.Layers, int64(len(b)))
		data = append(data, b...)
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(&mlx.Error{Message: "prefix: " + err.Error()}) // cannot fail: the header has only numbers
	}
	payload := make([]byte, 0, 4+len(head)+len(data))
	payload = binary.LittleEndian.AppendUint32(payload, uint32(len(head)))
	return append(append(payload, head...), data...)
}

// decodeNode reads a node of size bytes with its MAC. What it returns has the right one.
func decodeNode(t *mlx.Thread, mac hash.Hash, r io.Reader, size int64, kinds []cache.Kind) (nodeHeader,
	cache.Snapshots, error) {
	want := make([]byte, mac.Size())
	if _, err := io.ReadFull(r, want); err != nil {
		return nodeHeader{}, nil, fmt.Errorf("%w: %w", cache.ErrEncoding, err)
	}
	h, all, err := decodePayload(t, io.TeeReader(r, mac), size-int64(len(want)), kinds)
	if err == nil && !hmac.Equal(mac.Sum(nil), want) {
		all.Close()
		err = fmt.Errorf("%w: its MAC is wrong", cache.ErrEncoding)
	}
	if err != nil {
		return nodeHeader{}, nil, err
	}
	return h, all, nil
}

// decodePayload is decodeNode without the MAC. Its size bytes are the header and the layers.
func decodePayload(t *mlx.Thread, r io.Reader, size int64, kinds []cache.Kind) (h nodeHeader, all cache.Snapshots,
	err error) {
	if size, err = cache.ReadHeader(r, size, maxNodeHeader, &h); err != nil {
		return h, nil, err
	}
	if len(h.Layers) != len(kinds) || h.Start < 0 || h.End-h.Start != len(h.Edge) || h.End <= h.Start {
		return h, nil, fmt.Errorf("%w: of another model", cache.ErrEncoding)
	}
	all = make(cache.Snapshots, len(kinds))
	if err := readLayers(t, r, size, h, kinds, all); err != nil {
		all.Close()
		return h, nil, err
	}
	return h, all, nil
}

// readLayers reads the snapshots of a node's layers, which are the next size bytes of r.
func readLayers(t *mlx.Thread, r io.Reader, size int64, h nodeHeader, kinds []cache.Kind, all cache.Snapshots) error {
	decoder := cache.Decoder{Thread: t}
	for i, n := range h.Layers {
		if n == 0 {
			continue
		}
		if n < 0 || n > size {
			return fmt.Errorf("%w: layer %d has %d bytes of %d", cache.ErrEncoding, i, n, size)
		}
		s, err := decoder.Decode(kinds[i], r, n)
		if err != nil {
			return err
		}
		all[i] = s
		if s.To() != h.End {
			return fmt.Errorf("%w: layer %d ends at %d", cache.ErrEncoding, i, s.To())
		}
		size -= n
	}
	if size > 0 {
		return fmt.Errorf("%w: %d bytes follow", cache.ErrEncoding, size)
	}
	return nil
}

// edge reads only the keys of a node. An unreadable one has none.
func (d *Disk) edge(name fileName) []Key {
	f, size, err := d.open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if _, err := f.Seek(sha256.Size, io.SeekStart); err != nil {
		return nil
	}
	var h nodeHeader
	if _, err := cache.ReadHeader(f, size-sha256.Size, maxNodeHeader, &h); err != nil {
		return nil
	}
	return h.Edge
}

// open opens a node's file, whose size it returns. What is in its place may be a pipe, which nobody writes to, or a
// file of another user.
func (d *Disk) open(name fileName) (*os.File, int64, error) {
	f, err := place.Open(d.path(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = place.TrustedFile(f)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
