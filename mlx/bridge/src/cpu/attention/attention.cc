#include "cpu/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include "cpu/isa.h"
#include "cpu/scratch.h"
#include "cpu/team/team.h"

namespace ingot::cpu {

namespace {

#if defined(IG_HAS_AVX512)
// Made here, in a unit that any processor can run.
const AttentionKernels attention_avx512bf16 = [] {
  AttentionKernels k = attention_avx512;
  k.tile = attention_tile_avx512bf16;
  return k;
}();
#endif

}  // namespace

const AttentionKernels& attention_kernels() {
  static const Choice<AttentionKernels> choice = {
      .portable = &attention_portable,
#if defined(__x86_64__)
      .avx2 = &attention_avx2,
#endif
#if defined(IG_HAS_AVX512)
      .avx512 = &attention_avx512,
      .avx512bf16 = &attention_avx512bf16,
#endif
#if defined(__aarch64__)
      .neon = &attention_neon,
#endif
  };
  return choice.get();
}

namespace {

const AttentionKernels& kernels() { return attention_kernels(); }

constexpr int kShared = 4, kOwn = 5;  // scratch slots: of all threads' partial results, and of one thread's task

// The size of a tile: its queries and sums, float32, stay in the L2 cache together with a block of keys.
constexpr int kTileFloats = 48 << 10, kTileVectors = 128;
constexpr int kSmallBatchVectors = 16;  // up to this many vectors a group uses AttentionKernels::small_batch
// If there are few tiles, their keys are split into about this many parts in total, of at least kPartKeys keys.
constexpr int64_t kPieces = kMaxParts, kPartKeys = 256;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// A tile of rows and heads that share their keys, and the parts that these keys are split into.
struct Group {
  int sequence, kv_head;
  int head, heads;  // query heads
  int row, rows;
  bool small_batch;
  int64_t begin, part;  // keys: the first position, and positions per part
  int parts;
  int64_t at;  // index of its first vector in the partial results
};

struct Piece {
  int group, part;
};

struct Plan {
  std::vector<Group> groups;
  std::vector<Piece> pieces;
  int64_t vectors = 0;  // vectors of all partial results
  int64_t scratch = 0;  // floats per task
  int64_t copy = 0;     // floats per task for keys and values of several runs
};

int64_t first_key(const AttentionShape& s, const AttentionRows& r, int row) {
  int64_t begin = r.runs[0].position;
  return std::max(begin, first_seen(s.window, s.chunked, r.position + row));
}

int64_t end_key(const AttentionShape& s, const AttentionRows& r, int row) {
  const KeyRun& last = r.runs.back();
  int64_t end = last.position + last.count;
  return s.causal ? std::min(end, r.position + row + 1) : end;
}

int block_of(const AttentionShape& s) {
  int both = s.dim + s.value_dim;
  return both <= 256 ? 96 : both <= 512 ? 48 : 24;
}

// Splits the work into pieces. The plan depends on shapes only, not on the number of threads.
Plan plan(const AttentionShape& s, const std::vector<AttentionRows>& sequences, const AttentionKernels& k) {
  Plan p;
  const int group = s.heads / s.kv_heads;
  const int max_vectors = int(std::clamp<int64_t>(kTileFloats / (s.dim + s.value_dim) / k.panel * k.panel, k.panel,
                                                  kTileVectors));
  const bool whole_chunks = s.dim % k.chunk == 0 && s.value_dim % k.chunk == 0;
  int64_t most_rows = 0;
  for (const auto& r : sequences) {
    most_rows = std::max(most_rows, r.count);
    p.copy = r.runs.size() > 1 ? kMaxBlockKeys * (s.dim + s.value_dim) : p.copy;
  }
  const int tile_heads = std::min(group, max_vectors), tile_rows = std::max(1, max_vectors / tile_heads);
  // longest first: with causal attention, later rows see more keys
  for (int64_t tile = round_up(most_rows, tile_rows) / tile_rows - 1; tile >= 0; tile--) {
    for (int i = 0; i < int(sequences.size()); i++) {
      const auto& r = sequences[size_t(i)];
      if (tile * tile_rows >= r.count) {
        continue;
      }
      bool small_batch = whole_chunks && r.count * group <= kSmallBatchVectors;
      Group g{};
      g.sequence = i;
      g.small_batch = small_batch;
      g.row = int(tile) * tile_rows;
      g.rows = int(std::min<int64_t>(tile_rows, r.count - g.row));
      g.begin = first_key(s, r, g.row);
      int64_t keys = std::max<int64_t>(0, end_key(s, r, g.row + g.rows - 1) - g.begin);
      int64_t tiles =
          round_up(r.count, tile_rows) / tile_rows * s.kv_heads * (round_up(group, tile_heads) / tile_heads);
      int64_t cuts = tiles * 2 > kPieces ? 1 : kPieces / tiles;
      g.part = std::max(kPartKeys, round_up((keys + cuts - 1) / cuts, kPartKeys));
      g.parts = int(std::max<int64_t>(1, (keys + g.part - 1) / g.part));
      if (cuts == 1) {
        g.part = std::max<int64_t>(1, keys);
        g.parts = 1;
      }
      for (g.kv_head = 0; g.kv_head < s.kv_heads; g.kv_head++) {
        for (int h = 0; h < group; h += tile_heads) {
          g.head = g.kv_head * group + h;
          g.heads = std::min(tile_heads, group - h);
          g.at = p.vectors;
          for (int part = 0; part < g.parts; part++) {
            p.pieces.push_back({int(p.groups.size()), part});
          }
          p.groups.push_back(g);
          if (g.parts > 1) {
            p.vectors += int64_t(g.parts) * g.rows * g.heads;
          }
        }
      }
    }
  }
  int64_t vectors = round_up(std::max(max_vectors, kSmallBatchVectors), k.panel), block = block_of(s);
  p.scratch = vectors * (s.dim + s.value_dim + 2) + block * (s.dim + s.value_dim + 2 * k.panel) + s.dim +
              s.value_dim + 256;
  return p;
}

// Work runs the pieces of a plan. The thread that completes the last piece of a group merges its partial results.
class Work {
 public:
  Work(const AttentionShape& shape, const std::vector<AttentionRows>& sequences, const float* sinks)
      : shape_(shape),
        sequences_(sequences),
        sinks_(sinks),
        kernels_(kernels()),
        plan_(plan(shape, sequences, kernels_)) {
    size_t floats = size_t(plan_.vectors) * size_t(shape.value_dim + 2);
    size_t counts = round_up(plan_.groups.size() * sizeof(std::atomic<int>), 64);
    char* memory = cpu::scratch<char>(kShared, counts + floats * sizeof(float));
    left_ = reinterpret_cast<std::atomic<int>*>(memory);
    for (size_t i = 0; i < plan_.groups.size(); i++) {
      new (left_ + i) std::atomic<int>(plan_.groups[i].parts);
    }
    weights_ = reinterpret_cast<float*>(memory + counts);
    highest_ = weights_ + plan_.vectors;
    sums_ = highest_ + plan_.vectors;
  }

  void run() {
    parallel(int64_t(plan_.pieces.size()), 1, [this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        piece(plan_.pieces[size_t(i)]);
      }
    });
  }

 private:
  void piece(Piece p) {
    const Group& g = plan_.groups[size_t(p.group)];
    const auto& r = sequences_[size_t(g.sequence)];
    const int64_t vectors = int64_t(g.rows) * g.heads;
    AttentionTask t{};
    t.shape = &shape_;
    t.q = static_cast<const char*>(r.q) + (g.row * r.q_row + g.head * r.q_head) * size_of(shape_.q_type);
    t.q_head = r.q_head;
    t.q_row = r.q_row;
    t.rows = g.rows;
    t.heads = g.heads;
    t.position = r.position + g.row;
    KeyRun runs[kMaxRuns];
    for (const KeyRun& run : r.runs) {
      const int64_t size = shape_.bits > 0 ? 1 : size_of(shape_.kv_type);
      KeyRun& head = runs[t.run_count++] = run;
      head.k = static_cast<const char*>(run.k) + g.kv_head * run.k_head * size;
      head.v = static_cast<const char*>(run.v) + g.kv_head * run.v_head * size;
    }
    t.runs = runs;
    t.mask = r.mask;
    if (t.mask.data) {
      int64_t size = t.mask.additive ? 4 : 1;
      t.mask.data = static_cast<const char*>(r.mask.data) + (g.row * r.mask.row + g.head * r.mask.head) * size;
    }
    t.begin = g.begin + p.part * g.part;
    t.end = std::min(t.begin + g.part, end_key(shape_, r, g.row + g.rows - 1));
    t.block = block_of(shape_);
    const int64_t results = round_up(vectors, 16) * (shape_.value_dim + 2);
    float* own = cpu::scratch<float>(kOwn, size_t(plan_.scratch + results + plan_.copy));
    t.scratch = own;
    t.copy = plan_.copy ? own + plan_.scratch + results : nullptr;
    bool whole = g.parts == 1;
    int64_t at = g.at + p.part * vectors;
    t.weights = whole ? own + plan_.scratch : weights_ + at;
    t.highest = whole ? t.weights + vectors : highest_ + at;
    t.sums = whole ? t.highest + vectors : sums_ + at * shape_.value_dim;
    g.small_batch ? kernels_.small_batch(t) : kernels_.tile(t);
    if (whole) {
      join(g, t.sums, t.weights, t.highest);
    } else if (left_[p.group].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      join(g, sums_ + g.at * shape_.value_dim, weights_ + g.at, highest_ + g.at);
    }
  }

  void join(const Group& g, const float* sums, const float* weights, const float* highest) {
    const auto& r = sequences_[size_t(g.sequence)];
    AttentionJoin j{};
    j.shape = &shape_;
    j.sums = sums;
    j.weights = weights;
    j.highest = highest;
    j.parts = g.parts;
    j.part_vectors = int64_t(g.rows) * g.heads;
    j.sinks = sinks_ ? sinks_ + g.head : nullptr;
    j.out = static_cast<char*>(r.out) + (g.row * r.out_row + g.head * r.out_head) * size_of(shape_.q_type);
    j.out_head = r.out_head;
    j.out_row = r.out_row;
    j.rows = g.rows;
    j.heads = g.heads;
    kernels_.join(j);
  }

  static int64_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

  const AttentionShape& shape_;
  const std::vector<AttentionRows>& sequences_;
  const float* sinks_;
  const AttentionKernels& kernels_;
  Plan plan_;
  std::atomic<int>* left_;
  float *sums_, *weights_, *highest_;
};

}  // namespace

void pack_rows(Type type, const void* from, int64_t rows, int dim, int bits, void* to) {
  const int64_t size = int64_t(dim) * (type == Type::f32 ? 4 : 2), packed = packed_bytes(dim, bits);
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 14) / dim);
  parallel(rows, grain, [&](int64_t begin, int64_t end) {
    kernels().pack(type, static_cast<const char*>(from) + begin * size, end - begin, dim, bits,
                   static_cast<uint8_t*>(to) + begin * packed);
  });
}

void attention(const AttentionShape& shape, const std::vector<AttentionRows>& sequences, const float* sinks) {
  Work(shape, sequences, sinks).run();
}

}  // namespace ingot::cpu
