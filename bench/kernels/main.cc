// Times the products of all storage types on the instruction sets of this processor, for `make bench-kernels`.
//
//   kernels THREADS ROUNDS ISA ROWS[,ROWS...] [TYPE...]
//
// Prints a line of JSON for each type and number of rows, with the best and the median time of ROUNDS rounds. The
// weights lie in more matrices than a cache holds. The bandwidth of a virtual machine varies, and so does the speed of
// its processors, which may be halves of shared cores. Therefore each pass has its own plain read of memory before it,
// and after it the same instructions with weights in the cache; both are compared with this pass alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#if defined(__linux__)
#include <time.h>
#endif

#include "../cpu/peaks/machine.h"
#include "cpu/isa.h"
#include "cpu/matmul/work.h"

namespace ingot::cpu {

void* scratch(int slot, size_t bytes) {
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
  };
  static thread_local Block blocks[kScratchSlots];
  Block& b = blocks[slot];
  if (b.bytes < bytes) {
    std::free(b.data);
    b.data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    b.bytes = bytes;
  }
  return b.data;
}

}  // namespace ingot::cpu

using namespace ingot::cpu;

namespace {

const int64_t kColumns = std::getenv("KERNELS_COLUMNS") ? std::atoll(std::getenv("KERNELS_COLUMNS")) : 2048;
const int64_t kOutputs = 4096;
const size_t kBytes = size_t(192) << 20;        // of weights; several times the largest cache
const size_t kCachedBytes = size_t(256) << 10;  // of weights that the L2 cache holds
const double kPass = 0.003;                     // seconds of a timed pass, roughly

struct Kind {
  std::string name;
  Format format;
  int bits, group;
  ScaleType scale;
  Type type;  // of plain elements
  Type x;     // of the activations
  int zero = -1;  // of affine codes without biases; -1: they have biases

  bool biases() const { return format == Format::affine && zero < 0; }
};

std::vector<Kind> kinds() {
  std::vector<Kind> all = {
      {"f32", Format::plain, 32, 1, {}, Type::f32, Type::f32},
      {"f16", Format::plain, 16, 1, {}, Type::f16, Type::f16},
      {"bf16", Format::plain, 16, 1, {}, Type::bf16, Type::bf16},
  };
  const struct {
    const char* suffix;
    ScaleType scale;
    Type x;
  } scales[] = {{"", ScaleType::bf16, Type::bf16}, {"-f16", ScaleType::f16, Type::f16},
                {"-f32", ScaleType::f32, Type::bf16}};
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      for (const auto& s : scales) {
        all.push_back({"int" + std::to_string(bits) + "-g" + std::to_string(group) + s.suffix, Format::affine, bits,
                       group, s.scale, {}, s.x});
      }
    }
  }
  // ggml's types without biases, as they are imported
  all.push_back({"q4_0", Format::affine, 4, 32, ScaleType::f16, {}, Type::bf16, 8});
  all.push_back({"q5_0", Format::affine, 5, 32, ScaleType::f16, {}, Type::bf16, 16});
  all.push_back({"q8_0", Format::affine, 8, 32, ScaleType::f16, {}, Type::bf16, 128});
  all.push_back({"mxfp4", Format::fp4, 4, 32, ScaleType::e8m0, {}, Type::bf16});
  all.push_back({"nvfp4", Format::fp4, 4, 16, ScaleType::e4m3, {}, Type::bf16});
  all.push_back({"mxfp8", Format::fp8, 8, 32, ScaleType::e8m0, {}, Type::bf16});
  return all;
}

bool one_thread;  // whose time on the processor is measured, which other programs hardly change

double now() {
#if defined(__linux__)
  if (one_thread) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
  }
#endif
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A large region of memory with arbitrary contents, which all types share as their codes, scales and biases.
uint8_t* pool() {
  static uint8_t* data = [] {
    auto p = static_cast<uint8_t*>(LargePages(kBytes));
    if (!p) {
      std::fprintf(stderr, "kernels: no memory\n");
      std::exit(1);
    }
    // The bytes are numbers of ordinary size in all types, so that nothing is subnormal: 0x38 to 0x47.
    uint64_t state = 1;
    for (size_t i = 0; i < kBytes; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      p[i] = uint8_t(0x38 + (state >> 60));
    }
    return p;
  }();
  return data;
}

Weights shape(const Kind& k, int64_t outputs) {
  return {.rows = outputs, .columns = kColumns, .format = k.format, .bits = k.bits, .group = k.group,
          .scale_type = k.scale, .type = k.type};
}

size_t weight_bytes(const Kind& k) {
  const Weights w = shape(k, kOutputs);
  const size_t scales = k.format == Format::plain ? 0 : size_t(w.rows * w.groups() * w.scale_bytes());
  return size_t(w.rows * w.row_bytes()) + scales * (k.biases() ? 2 : 1);
}

size_t aligned(size_t n) { return (n + 4095) / 4096 * 4096; }

// The i-th matrix of a type; they overlap nowhere until the pool is used up.
Weights matrix(const Kind& k, size_t i, int64_t outputs = kOutputs) {
  Weights w = shape(k, outputs);
  const size_t codes = size_t(w.rows * w.row_bytes()),
               scales = k.format == Format::plain ? 0 : size_t(w.rows * w.groups() * w.scale_bytes());
  const size_t one = aligned(codes) + (k.biases() ? 2 : 1) * aligned(scales);
  const uint8_t* at = pool() + one * (i % (kBytes / one));
  w.codes = at;
  w.scales = at + aligned(codes);
  w.biases = k.biases() ? at + aligned(codes) + aligned(scales) : nullptr;
  w.zero = std::max(k.zero, 0);
  return w;
}

const char* name_of(Mode m) {
  const char* names[] = {"f32", "i16", "i8", "bf16"};
  return names[int(m)];
}

// Measures the clock of the processor, in Hz: an addition that waits for the one before takes a cycle.
double clock_rate() {
  double best = 1;
  for (int pass = 0; pass < 50; pass++) {
    const double begun = now();
    uint64_t n = 0;
    for (int i = 0; i < 100000; i++) {
#if defined(__GNUC__)
      asm volatile("" : "+r"(n));
#endif
      n += uint64_t(i) ^ n;
    }
    best = std::min(best, now() - begun);
  }
  return 2 * 100000 / best;
}

// Reads the next part of the pool with all threads, and returns the seconds per byte.
double read_memory() {
  static volatile uint64_t sink;
  static int64_t part = 0;
  constexpr int64_t kParts = 4, kMegabytes = int64_t(kBytes >> 20) / kParts;
  const uint8_t* from = pool() + ((part++ % kParts * kMegabytes) << 20);
  const double begun = now();
  parallel(kMegabytes, 4, [from](int64_t first, int64_t last) {
    typedef uint64_t Words __attribute__((vector_size(16)));
    Words a{}, b{}, c{}, d{};
    auto at = reinterpret_cast<const Words*>(from + (first << 20));
    for (auto end = reinterpret_cast<const Words*>(from + (last << 20)); at < end; at += 4) {
      __builtin_prefetch(at + 128);  // as far ahead as the kernels do
      a += at[0], b += at[1], c += at[2], d += at[3];
    }
    a += b + c + d;
    sink = a[0];
  });
  return (now() - begun) / double(kMegabytes << 20);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Case {
  Kind kind;
  int64_t rows;
  std::vector<uint8_t> x, y;
  size_t next = 0;  // matrix
  int count = 1;    // products of a pass
  // One each for each round: seconds, those of a plain read of the weights, and those with weights in the cache.
  std::vector<double> times, reads, cached;

  void round(bool fast) {
    reads.push_back(read_memory() * double(weight_bytes(kind)));
    times.push_back(pass(fast));
    cached.push_back(cached_pass(fast));
  }

  // Returns the median share of `limits` in the times.
  double share(const std::vector<double>& limits) const {
    std::vector<double> shares;
    for (size_t i = 0; i < times.size(); i++) {
      shares.push_back(limits[i] / times[i]);
    }
    return median(shares);
  }

  double pass(bool fast) {
    const double begun = now();
    for (int i = 0; i < count; i++) {
      Product p{.weights = matrix(kind, next++), .y = y.data(), .type = kind.x};
      multiply(x.data(), kind.x, rows, kColumns, &p, 1, fast);
    }
    return (now() - begun) / count;
  }

  // Does what pass does with weights in the cache: each thread packs the activations and multiplies its share of the
  // outputs, of a matrix that it reads again and again.
  double cached_pass(bool fast) {
    const int64_t threads = Team::instance().size(), row = weight_bytes(kind) / kOutputs;
    const int64_t outputs = std::max<int64_t>(64, std::min(int64_t(kCachedBytes) / row / 64 * 64, kOutputs / threads));
    const int64_t copies = std::max<int64_t>(1, kOutputs / threads / outputs);
    std::vector<double> seconds(threads);
    const int passes = std::min(count, 4);
    parallel(threads, 1, [&](int64_t t, int64_t) {
      std::vector<uint8_t> result(size_t(rows * outputs) * size_of(kind.x));
      std::vector<Product> products(copies, {.weights = matrix(kind, t, outputs), .y = result.data(), .type = kind.x});
      multiply(x.data(), kind.x, rows, kColumns, products.data(), 1, fast);  // reads the weights into the cache
      const double begun = now();
      for (int i = 0; i < passes; i++) {
        multiply(x.data(), kind.x, rows, kColumns, products.data(), int(copies), fast);
      }
      seconds[t] = (now() - begun) / passes;
    });
    double rate = 0;  // outputs per second of all threads
    for (double s : seconds) {
      rate += double(copies * outputs) / s;
    }
    return double(kOutputs) / rate;
  }
};

std::vector<int64_t> numbers(const char* list) {
  std::vector<int64_t> all;
  for (const char* p = list; *p;) {
    char* end;
    all.push_back(std::strtol(p, &end, 10));
    p = *end ? end + 1 : end;
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: kernels THREADS ROUNDS ISA ROWS[,ROWS...] [TYPE...]\n");
    return 2;
  }
  const int rounds = std::max(1, std::atoi(argv[2]));
  const bool fast = std::getenv("KERNELS_FAST") != nullptr;
  try {
    set_isa(argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return 3;
  }
  Team::instance().resize(std::atoi(argv[1]));
  one_thread = std::atoi(argv[1]) == 1;
  pool();
  for (int64_t rows : numbers(argv[4])) {
    std::vector<Case> cases;
    for (const Kind& k : kinds()) {
      if (kColumns % k.group != 0 || (argc > 5 && std::find(argv + 5, argv + argc, k.name) == argv + argc)) {
        continue;
      }
      Case c{.kind = k, .rows = rows};
      c.x.resize(size_t(rows * kColumns) * size_of(k.x));
      for (size_t i = 0; i < c.x.size(); i++) {
        c.x[i] = uint8_t(0x38 + i * 7 % 5);
      }
      c.y.resize(size_t(rows * kOutputs) * size_of(k.x));
      c.count = int(std::clamp(std::ceil(kPass / c.pass(fast)), 1.0, 200.0));
      cases.push_back(std::move(c));
    }
    double clock = 0;
    for (int i = 0; i < rounds; i++) {
      clock = std::max(clock, clock_rate());
      for (Case& c : cases) {
        c.round(fast);
      }
    }
    for (const Case& c : cases) {
      const Weights w = matrix(c.kind, 0);
      std::printf("{\"isa\": \"%s\", \"type\": \"%s\", \"rows\": %d, \"mode\": \"%s\", \"seconds\": %.3e, "
                  "\"median\": %.3e, \"cached_seconds\": %.3e, \"bytes\": %zu, \"products\": %lld, \"read\": %.4g, "
                  "\"clock\": %.4g, \"memory\": %.3f, \"cached\": %.3f}\n",
                  ingot::cpu::name_of(isa()), c.kind.name.c_str(), int(rows),
                  name_of(layout_for(w, c.kind.x, rows, fast).mode), *std::min_element(c.times.begin(), c.times.end()),
                  median(c.times), *std::min_element(c.cached.begin(), c.cached.end()), weight_bytes(c.kind),
                  (long long)(kColumns * kOutputs * rows), double(weight_bytes(c.kind)) / median(c.reads), clock,
                  c.share(c.reads), c.share(c.cached));
      std::fflush(stdout);
    }
  }
}
