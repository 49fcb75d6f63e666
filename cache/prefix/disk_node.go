package prefix

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/cache"
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

// encodeNode returns the input of decodeNode without the leading checksum.
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

func decodeNode(t *mlx.Thread, b []byte, kinds []cache.Kind) (h nodeHeader, all cache.Snapshots, err error) {
	if len(b) < sha256.Size+4 {
		return h, nil, fmt.Errorf("%w: %d bytes", cache.ErrEncoding, len(b))
	}
	payload := b[sha256.Size:]
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], b[:sha256.Size]) {
		return h, nil, fmt.Errorf("%w: its bytes have changed", cache.ErrEncoding)
	}
	n := int64(binary.LittleEndian.Uint32(payload))
	if payload = payload[4:]; n > int64(len(payload)) {
		return h, nil, fmt.Errorf("%w: a header of %d bytes", cache.ErrEncoding, n)
	}
	if err := json.Unmarshal(payload[:n], &h); err != nil || len(h.Layers) != len(kinds) || h.Start < 0 ||
		h.End-h.Start != len(h.Edge) || h.End <= h.Start {
		return h, nil, fmt.Errorf("%w: of another model", cache.ErrEncoding)
	}
	rest := payload[n:]
	all = make(cache.Snapshots, len(kinds))
	for i, size := range h.Layers {
		if size == 0 {
			continue
		}
		if size < 0 || size > int64(len(rest)) {
			all.Close()
			return h, nil, fmt.Errorf("%w: layer %d has %d bytes of %d", cache.ErrEncoding, i, size, len(rest))
		}
		if all[i], err = cache.Decode(t, kinds[i], bytes.NewReader(rest[:size])); err != nil {
			all.Close()
			return h, nil, err
		}
		if all[i].To() != h.End {
			all.Close()
			return h, nil, fmt.Errorf("%w: layer %d ends at %d", cache.ErrEncoding, i, all[i].To())
		}
		rest = rest[size:]
	}
	return h, all, nil
}

// edge reads only the keys of a node.
func (d *Disk) edge(name fileName) []Key {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil
	}
	defer f.Close()
	start := make([]byte, sha256.Size+4)
	if _, err := io.ReadFull(f, start); err != nil {
		return nil
	}
	n := binary.LittleEndian.Uint32(start[sha256.Size:])
	if n > maxNodeHeader {
		return nil
	}
	b := make([]byte, n)
	var h nodeHeader
	if _, err := io.ReadFull(f, b); err != nil || json.Unmarshal(b, &h) != nil {
		return nil
	}
	return h.Edge
}
