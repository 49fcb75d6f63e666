package ranks

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ingotml/ingot/mlx"
)

// meeting is where the followers find the leader. It goes over the group.
type meeting struct {
	Addresses   []string `json:"addresses"`
	Fingerprint []byte   `json:"fingerprint"` // SHA-256 of the leader's certificate
	Secret      []byte   `json:"secret"`      // that followers show
}

const (
	meetingBytes = 4096
	meetingLimit = 30 * time.Second
	secretBytes  = 32
)

// Meet connects the ranks of a group, which has nobody else in it, with control connections: on rank 0 one to each
// follower, in order, and on others one to rank 0. They are encrypted, and ranks prove that they are in the group by
// what rank 0 has sent over it. host is the address that rank 0 listens on. Without one it is the loopback interface
// if all ranks are on one host, and otherwise all interfaces. All ranks must call it, outside Do.
func Meet(ctx context.Context, t *mlx.Thread, g *mlx.Group, host string) ([]net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, meetingLimit)
	defer cancel()
	together := false
	err := t.Do(ctx, func() error { together = onOneHost(t, g); return nil })
	if err != nil {
		return nil, err
	}
	if host == "" && together {
		host = "127.0.0.1"
	}
	if g.Rank() > 0 {
		var m meeting
		err := t.Do(ctx, func() error { return json.Unmarshal(tell(t, g, nil), &m) })
		if err != nil {
			return nil, fmt.Errorf("the address of rank 0: %w", err)
		}
		conn, err := m.dial(ctx, g.Rank())
		return []net.Conn{conn}, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	m, config, err := newMeeting(listener.Addr().(*net.TCPAddr), host)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(m)
	if err == nil && len(text) > meetingBytes {
		err = fmt.Errorf("the addresses of this host take %d bytes, at most %d are allowed", len(text), meetingBytes)
	}
	if err == nil {
		err = t.Do(ctx, func() error { tell(t, g, text); return nil })
	}
	if err != nil {
		return nil, err
	}
	return m.accept(ctx, tls.NewListener(listener, config), g.Size())
}

// tell returns the leader's text on all ranks.
func tell(t *mlx.Thread, g *mlx.Group, text []byte) []byte {
	all := make([]float32, meetingBytes) // a float32 is exact for a byte
	for i, b := range text {
		all[i] = float32(b)
	}
	all = g.Broadcast(mlx.FromSlice(t, all), 0).Float32s()
	text = nil
	for _, v := range all {
		if v < 1 || v > 255 {
			break
		}
		text = append(text, byte(v))
	}
	return text
}

// onOneHost reports whether all ranks have the same host name.
func onOneHost(t *mlx.Thread, g *mlx.Group) bool {
	name, err := os.Hostname()
	h := fnv.New32a()
	_, _ = io.WriteString(h, name)
	own := float32(h.Sum32() >> 8)
	if err != nil {
		own = float32(g.Rank())
	}
	for rank := range g.Size() {
		if g.Broadcast(mlx.FromSlice(t, []float32{own}), rank).Float32s()[0] != own {
			own = -1 // goes on, since all ranks take part in each operation
		}
	}
	all := g.AllSum(mlx.FromSlice(t, []float32{min(own, 0)}), mlx.Float32).Float32s()
	return all[0] == 0
}

// newMeeting makes a secret and a certificate for a listener.
func newMeeting(at *net.TCPAddr, host string) (meeting, *tls.Config, error) {
	m := meeting{Secret: make([]byte, secretBytes)}
	_, _ = rand.Read(m.Secret) // never fails
	if m.Addresses = []string{at.String()}; host == "" {
		m.Addresses = nil
		all, err := net.InterfaceAddrs()
		if err != nil {
			return m, nil, err
		}
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				m.Addresses = append(m.Addresses, net.JoinHostPort(n.IP.String(), fmt.Sprint(at.Port)))
			}
		}
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return m, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return m, nil, err
	}
	sum := sha256.Sum256(der)
	m.Fingerprint = sum[:]
	return m, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
	}, nil
}

// dial connects a follower to the leader.
func (m meeting) dial(ctx context.Context, rank int) (net.Conn, error) {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: meetingLimit / 6}, Config: &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // the fingerprint is checked instead
		VerifyConnection: func(s tls.ConnectionState) error {
			sum := sha256.Sum256(s.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare(sum[:], m.Fingerprint) != 1 {
				return errors.New("this is not rank 0: its certificate is another one")
			}
			return nil
		},
	}}
	var failed error
	for _, at := range m.Addresses {
		conn, err := d.DialContext(ctx, "tcp", at)
		if err == nil {
			hello := binary.BigEndian.AppendUint32(append([]byte{}, m.Secret...), uint32(rank))
			if _, err = conn.Write(hello); err == nil {
				return conn, nil
			}
			conn.Close()
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("connecting to rank 0 at %v: %w", m.Addresses, failed)
}

// mostGuests bounds the connections that have not shown the secret yet.
const mostGuests = 64

// accept returns the connections of all followers.
func (m meeting) accept(ctx context.Context, l net.Listener, size int) ([]net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var mu sync.Mutex
	var guests sync.WaitGroup
	conns, left, slots := make([]net.Conn, size-1), size-1, make(chan struct{}, mostGuests)
	admit := func(c net.Conn) {
		rank, err := m.guest(c)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || rank < 1 || rank >= size || conns[rank-1] != nil || left == 0 {
			c.Close()
			return
		}
		conns[rank-1] = c
		if left--; left == 0 {
			l.Close() // ends the loop
		}
	}
	for size > 1 {
		c, err := l.Accept()
		if err != nil {
			break
		}
		slots <- struct{}{}
		guests.Go(func() { admit(c); <-slots })
	}
	guests.Wait()
	if left == 0 {
		return conns, nil
	}
	var missing []int
	for i, c := range conns {
		if c == nil {
			missing = append(missing, i+1)
		} else {
			c.Close()
		}
	}
	return nil, fmt.Errorf("ranks %v have not connected to rank 0 at %v", missing, m.Addresses)
}

// guest reads the secret and the rank from a new connection.
func (m meeting) guest(c net.Conn) (rank int, err error) {
	_ = c.SetDeadline(time.Now().Add(meetingLimit / 3))
	defer func() { _ = c.SetDeadline(time.Time{}) }()
	var hello [secretBytes + 4]byte
	if _, err := io.ReadFull(c, hello[:]); err != nil {
		return 0, err
	}
	if subtle.ConstantTimeCompare(hello[:secretBytes], m.Secret) != 1 {
		return 0, errors.New("a connection without the secret of the group")
	}
	return int(binary.BigEndian.Uint32(hello[secretBytes:])), nil
}
