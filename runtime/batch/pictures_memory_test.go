package batch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/vision"
	"golang.org/x/sync/semaphore"
)

// gray returns a PNG of a single shade.
func gray(t *testing.T, side int, shade uint8) runtime.Picture {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.Gray{shade}})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return runtime.Picture{Data: b.Bytes()}
}

// claims returns a PNG that ends after its header.
func claims(side uint32, depth, interlace byte) runtime.Picture {
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
	head = append(binary.BigEndian.AppendUint32(head, side), depth, 6, 0, 0, interlace)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return runtime.Picture{Data: binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(head))}
}

// freePictures checks that all of the memory is free before long.
func freePictures(t *testing.T, d *semaphore.Weighted, all int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := d.Acquire(ctx, all); err != nil {
		t.Fatalf("memory of pictures is still taken: %v", err)
	}
	d.Release(all)
}

// Pictures are decoded when there is memory for them. A picture that needs more than the bound is rejected by its
// header.
func TestPictureMemory(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	one := []int32{1, runtimetest.VisionStart, runtimetest.ImagePad, runtimetest.VisionEnd}
	// Patches of more than a gigabyte.
	l.model.Processor.Vision.Processor.Temporal, l.model.Processor.Vision.Processor.MaxPixels = 20, limits.PicturePixels
	huge := claims(8192, 8, 0)
	if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: one,
		Pictures: []runtime.Picture{huge}}); !errors.Is(err,
		runtime.ErrPictures) || !strings.Contains(err.Error(), "MiB to decode, more than 1024") {
		t.Errorf("a picture that takes too much: %v", err)
	}
	l = loadModel(t, "qwen3_5-vision")
	size, err := l.model.Processor.Vision.Processor.Measure(gray(t, 512, 0).Data)
	if err != nil {
		t.Fatal(err)
	}
	all := 3 * size.Memory // memory for one
	l.model.Pictures.Memory = semaphore.NewWeighted(all)
	var wg sync.WaitGroup
	for i := range 6 {
		pictures := []runtime.Picture{gray(t, 512, uint8(2*i)), gray(t, 512, uint8(2*i+1))}
		wg.Go(func() {
			prompt := append(append([]int32{}, one...), one...)
			if _, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, Pictures: pictures,
				MaxTokens: 2}); err != nil || last.Done == "" {
				t.Errorf("request %d: %+v, %v", i, last, err)
			}
		})
	}
	wg.Wait()
	freePictures(t, l.model.Pictures.Memory, all)
}

// While pictures wait for memory, other requests continue. Canceled requests and damaged pictures do not affect them.
func TestPicturesWaitForMemory(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	const all = 64 << 20
	l.model.Pictures.Memory = semaphore.NewWeighted(all)
	if err := l.model.Pictures.Memory.Acquire(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	one := []int32{1, runtimetest.VisionStart, runtimetest.ImagePad, runtimetest.VisionEnd}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	canceled, waiting := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, _, err := runtimetest.Collect(ctx, l, runtime.Request{Prompt: one, Pictures: []runtime.Picture{gray(t, 64, 1)},
			MaxTokens: 1})
		canceled <- err
	}()
	go func() {
		_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: one,
			Pictures: []runtime.Picture{gray(t, 64, 2)}, MaxTokens: 1})
		waiting <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		usage, err := l.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if usage.Running == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the requests do not run")
		}
	}
	if _, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{1, 2}, MaxTokens: 2,
		IgnoreEOS: true}); err != nil || last.Stats.Tokens != 2 {
		t.Errorf("a request without pictures: %+v, %v", last, err)
	}
	cancel()
	if err := <-canceled; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled request: %v", err)
	}
	select {
	case err := <-waiting:
		t.Fatalf("decoded without memory: %v", err)
	default:
	}
	l.model.Pictures.Memory.Release(all)
	if err := <-waiting; err != nil {
		t.Errorf("a waiting request: %v", err)
	}
	_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: one,
		Pictures: []runtime.Picture{claims(64, 8, 0)}})
	if !errors.Is(err, vision.ErrPicture) || !errors.Is(err, runtime.ErrPictures) ||
		!strings.Contains(err.Error(), "picture 1: PNG") {
		t.Errorf("a damaged picture: %v", err)
	}
	freePictures(t, l.model.Pictures.Memory, all)
}
