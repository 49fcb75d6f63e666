#include "ops/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/isa.h"
#include "cpu/attention/attention.h"
#include "cpu/node.h"

namespace ingot {

namespace {

bool has_kernels(mx::Dtype t) { return t == mx::float32 || t == mx::bfloat16 || t == mx::float16; }

cpu::Type type_of(mx::Dtype t) {
  return t == mx::float32 ? cpu::Type::f32 : t == mx::float16 ? cpu::Type::f16 : cpu::Type::bf16;
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

// Returns the stride in elements of an axis of [b, h, l, s] in a mask that broadcasts to it; 0 if the axis is
// broadcast.
int64_t mask_stride(const mx::array& mask, int axis) {
  int at = axis - (4 - int(mask.ndim()));
  if (at < 0 || mask.shape(at) == 1) {
    return 0;
  }
  int64_t stride = 1;
  for (int i = at + 1; i < int(mask.ndim()); i++) {
    stride *= mask.shape(i);
  }
  return stride;
}

bool mask_fits(const mx::array& mask, const mx::Shape& full, mx::Dtype out) {
  if (mask.ndim() > 4 || mask.size() == 0 ||
      (mask.dtype() != mx::bool_ && mx::promote_types(mask.dtype(), out) != out)) {
    return false;
  }
  for (int i = 0; i < int(mask.ndim()); i++) {
    int n = mask.shape(i), want = full[size_t(i) + 4 - mask.ndim()];
    if (n != 1 && n != want) {
      return false;
    }
  }
  return true;
}

// Reports whether the kernels support this attention. Everything else goes to MLX, which also reports the errors.
bool kernels_support(const mx::array& q, const mx::array& k, const mx::array& v, const std::optional<mx::array>& mask,
                  const std::optional<mx::array>& sinks, bool causal) {
  return q.ndim() == 4 && k.ndim() == 4 && v.ndim() == 4 && has_kernels(q.dtype()) && k.dtype() == q.dtype() &&
         v.dtype() == q.dtype() && k.shape(0) == q.shape(0) && v.shape(0) == q.shape(0) && k.shape(1) == v.shape(1) &&
         q.shape(1) % k.shape(1) == 0 && k.shape(2) == v.shape(2) && k.shape(3) == q.shape(3) &&
         q.shape(3) <= cpu::kMaxHeadDim && v.shape(3) <= cpu::kMaxHeadDim && !(causal && mask) &&
         !(causal && q.shape(2) > k.shape(2)) &&
         (!mask || mask_fits(*mask, {q.shape(0), q.shape(1), q.shape(2), k.shape(2)}, q.dtype())) &&
         (!sinks || (sinks->ndim() == 1 && sinks->shape(0) == q.shape(1) &&
                     mx::promote_types(sinks->dtype(), q.dtype()) == q.dtype()));
}

}  // namespace

mx::array attention(const mx::array& q, const mx::array& k, const mx::array& v, const std::optional<mx::array>& mask,
                    const std::optional<mx::array>& sinks, float scale, bool causal, mx::StreamOrDevice s) {
  not_empty(q), not_empty(k), not_empty(v);
  if (!cpu::on_cpu(s) || !kernels_support(q, k, v, mask, sinks, causal)) {
    return mx::fast::scaled_dot_product_attention(q, k, v, scale, causal ? "causal" : "", mask, sinks, false, s);
  }
  std::vector<mx::array> inputs{q, k, v};
  cpu::AttentionMask m;
  int64_t mask_batch = 0;
  if (mask) {
    m.additive = mask->dtype() != mx::bool_;
    m.head = mask_stride(*mask, 1);
    m.row = mask_stride(*mask, 2);
    m.key = mask_stride(*mask, 3);
    mask_batch = mask_stride(*mask, 0) * (m.additive ? 4 : 1);
    inputs.push_back(m.additive ? mx::astype(*mask, mx::float32, s) : *mask);
  }
  if (sinks) {
    inputs.push_back(mx::astype(*sinks, mx::float32, s));
  }
  const int batch = q.shape(0), heads = q.shape(1), rows = q.shape(2), dim = q.shape(3);
  const int kv_heads = k.shape(1), keys = k.shape(2), value_dim = v.shape(3);
  cpu::AttentionShape shape{type_of(q.dtype()), type_of(k.dtype()), heads, kv_heads, dim, value_dim, scale};
  shape.causal = causal;
  shape.fast = cpu::math() == cpu::Math::fast;
  auto body = [=, masked = mask.has_value(), has_sinks = sinks.has_value()](const cpu::Memory& memory) {
    const int64_t size = shape.q_type == cpu::Type::f32 ? 4 : 2;
    std::vector<cpu::AttentionRows> all;
    for (int64_t b = 0; b < batch; b++) {
      cpu::AttentionRows r{};
      r.q = memory.input<char>(0) + b * heads * rows * dim * size;
      r.out = memory.output<char>(0) + b * heads * rows * value_dim * size;
      r.q_head = int64_t(rows) * dim;
      r.q_row = dim;
      r.out_head = int64_t(rows) * value_dim;
      r.out_row = value_dim;
      r.position = keys - rows;
      r.count = rows;
      r.run_count = 1;
      r.runs[0] = {memory.input<char>(1) + b * kv_heads * keys * dim * size,
                   memory.input<char>(2) + b * kv_heads * keys * value_dim * size,
                   int64_t(keys) * dim, dim, int64_t(keys) * value_dim, value_dim, 0, keys};
      r.mask = m;
      if (masked) {
        r.mask.data = memory.input<char>(3) + b * mask_batch;
      }
      all.push_back(r);
    }
    cpu::attention(shape, all, has_sinks ? memory.input<float>(masked ? 4 : 3) : nullptr);
  };
  return cpu::node("attention", std::move(inputs), {{batch, heads, rows, value_dim}}, {q.dtype()}, s,
                   std::move(body))[0];
}

namespace {

// One segment of attend: its query rows, the rows of keys and values to write, which end at the same position, and its
// storage.
struct Step {
  int row, rows;
  int64_t position, seen;
  int fresh, first;  // rows to write, and the index of the first in k and v
  int64_t capacity;
  size_t store;  // index of its first store

  int64_t begin() const { return seen - fresh; }  // position of the first row to write
};

// Returns the first position that a segment's first row sees.
int64_t first_seen(const Step& t, const AttendOptions& o) {
  return o.window > 0 ? std::max<int64_t>(0, t.position + 1 - o.window) : 0;
}

struct Attend {
  int heads, kv_heads, dim, value_dim;
  bool write;
  bool separate_values;        // values have storage of their own
  int key_width, value_width;  // elements per row of the stores
  int fresh;                   // rows to write, over all segments
  std::vector<Step> steps;
};

// Checks the arguments of attend and converts them. Throws std::invalid_argument.
Attend parse_arguments(const mx::array& q, const std::optional<mx::array>& k, const std::optional<mx::array>& v,
            const std::vector<mx::array>& stores, const std::vector<int>& segments,
            const std::optional<mx::array>& sinks,
            const AttendOptions& o) {
  if (q.ndim() != 3 || q.size() == 0) {
    refuse("attend: queries are " + to_string(q) + ", want [rows, heads, channels]");
  }
  if (segments.empty() || segments.size() % 4 != 0) {
    refuse("attend: " + std::to_string(segments.size()) + " numbers are not a list of {rows, position, seen, stored}");
  }
  Attend a{};
  const size_t n = segments.size() / 4;
  a.separate_values = o.values == 0;
  a.write = k.has_value();
  const size_t each = a.separate_values ? 2 : 1;
  if (stores.size() != n * each || v.has_value() != (a.write && a.separate_values)) {
    refuse("attend: " + std::to_string(stores.size()) + " stores for " + std::to_string(n) +
           " segments, or values without storage");
  }
  if (o.values < 0 || o.window < 0 || !(o.softcap >= 0)) {
    refuse("attend: a window, a soft cap or a number of channels is negative");
  }
  if (o.bits != 0 && o.bits != 8 && o.bits != 4) {
    refuse("attend: storage of " + std::to_string(o.bits) + " bits; want 8 or 4, or 0 if not packed");
  }
  a.heads = q.shape(1);
  a.dim = q.shape(2);
  for (size_t i = 0; i < stores.size(); i++) {
    const auto& x = stores[i];
    const auto& like = stores[i % each];
    if (x.ndim() != 4 || x.shape(0) != 1 || x.size() == 0 || x.shape(1) != like.shape(1) ||
        x.shape(3) != like.shape(3) ||
        x.dtype() != like.dtype() || !(o.bits > 0 ? x.dtype() == mx::uint8 : mx::issubdtype(x.dtype(), mx::floating))) {
      refuse("attend: storage " + to_string(x) + " is not [1, heads, capacity, size], or differs from the first");
    }
  }
  auto channels = [&](int width) { return o.bits > 0 ? cpu::packed_dim(width, o.bits) : width; };
  a.kv_heads = stores[0].shape(1);
  a.key_width = stores[0].shape(3);
  a.value_width = a.separate_values ? stores[1].shape(3) : a.key_width;
  a.value_dim = a.separate_values ? channels(a.value_width) : o.values;
  if (a.value_dim == 0 || a.heads % a.kv_heads != 0 || channels(a.key_width) != a.dim ||
      (a.separate_values && stores[1].shape(1) != a.kv_heads) ||
      a.value_dim > (a.separate_values ? a.value_dim : a.dim)) {
    refuse("attend: queries " + to_string(q) + " do not fit storage " + to_string(stores[0]));
  }
  a.fresh = a.write && k->ndim() > 0 ? k->shape(0) : 0;
  if (a.write && (k->shape() != mx::Shape{a.fresh, a.kv_heads, a.dim} ||
                  (a.separate_values && v->shape() != mx::Shape{a.fresh, a.kv_heads, a.value_dim}))) {
    refuse("attend: keys " + to_string(*k) + " or values do not fit the queries and the storage");
  }
  if (sinks && (sinks->ndim() != 1 || sinks->shape(0) != a.heads)) {
    refuse("attend: sinks " + to_string(*sinks) + " are not one number per head");
  }
  int64_t row = 0, first = 0;
  for (size_t i = 0; i < n; i++) {
    const auto& store = stores[i * each];
    const int* now = &segments[4 * i];
    Step t{int(row), now[0], now[1], now[2], now[3], int(first), store.shape(2), i * each};
    if (a.separate_values && stores[i * each + 1].shape(2) != t.capacity) {
      refuse("attend: keys and values have different capacities");
    }
    bool fits = t.rows > 0 && t.position >= 0 && t.seen > 0 && (o.ring || t.seen <= t.capacity) &&
                (a.write ? t.seen == t.position + t.rows && t.fresh >= t.rows && t.begin() >= 0 : t.fresh == 0) &&
                (!o.ring || (o.window > 0 && o.window <= t.capacity)) &&
                (o.window == 0 || t.position + t.rows - o.window < t.seen) &&
                (!o.ring || a.write || t.seen - first_seen(t, o) <= t.capacity);
    row += t.rows;
    first += t.fresh;
    if (!fits || row > q.shape(0) || first > a.fresh) {
      refuse("attend: segment " + std::to_string(i) + " has " + std::to_string(t.rows) + " rows from position " +
             std::to_string(t.position) + ", stores " + std::to_string(t.fresh) + " and sees " +
             std::to_string(t.seen) +
             " positions, which do not fit storage of " + std::to_string(t.capacity) + " or the window");
    }
    a.steps.push_back(t);
  }
  if (row != q.shape(0) || first != a.fresh) {
    refuse("attend: the segments have " + std::to_string(row) + " rows of " + std::to_string(q.shape(0)) +
           " and store " +
           std::to_string(first) + " of " + std::to_string(a.fresh));
  }
  return a;
}

// Reports whether writing before attention would overwrite keys in the ring that rows of this step still see.
bool must_write_last(const Step& t, const AttendOptions& o) { return o.ring && t.rows > t.capacity - o.window + 1; }

// Returns the end of the positions that are read from the storage. If the new rows are written last, they are read from
// k and v.
int64_t stored_end(const Step& t, bool write_last) { return write_last ? t.begin() : t.seen; }

// A run of positions in consecutive slots. slots returns the runs of positions [first, end) in a ring or a linear
// storage.
struct Slots {
  int64_t position, slot, count;
};
std::vector<Slots> slots(int64_t first, int64_t end, int64_t capacity, bool ring) {
  std::vector<Slots> runs;
  for (int64_t p = first; p < end;) {
    int64_t slot = ring ? p % capacity : p, n = std::min(end - p, capacity - slot);
    runs.push_back({p, slot, n});
    p += n;
  }
  return runs;
}

// Copies the last new rows of a segment, at most capacity, to their slots in one store.
void write_rows(const char* from, char* store, const Step& t, int heads, int64_t row_bytes, bool ring) {
  int64_t skip = std::max<int64_t>(0, t.fresh - t.capacity);
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 15) / std::max<int64_t>(1, heads * row_bytes));
  cpu::parallel(t.fresh - skip, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin + skip; i < end + skip; i++) {
      int64_t slot = ring ? (t.begin() + i) % t.capacity : t.begin() + i;
      for (int h = 0; h < heads; h++) {
        std::memcpy(store + (h * t.capacity + slot) * row_bytes, from + ((t.first + i) * heads + h) * row_bytes,
                    size_t(row_bytes));
      }
    }
  });
}

// Moves the segments to the positions of their first rows.
void move_to(const int32_t* positions, Attend& a, const AttendOptions& o) {
  for (Step& t : a.steps) {
    const int64_t now = positions[t.row];
    t.seen += now - t.position;
    t.position = now;
    if (now < 0 || t.begin() < 0 || (!o.ring && t.seen > t.capacity)) {
      throw std::out_of_range("attend: " + std::to_string(t.rows) + " rows from position " + std::to_string(now) +
                              " do not fit storage of " + std::to_string(t.capacity));
    }
  }
}

constexpr int kPackedScratch = 6;  // scratch slot of a step's packed rows

std::vector<mx::array> attend_with_kernels(const Attend& a, const mx::array& q, const std::optional<mx::array>& k,
                                   const std::optional<mx::array>& v, const std::vector<mx::array>& stores,
                                   const std::optional<mx::array>& sinks, const std::vector<mx::array>& after,
                                   const AttendOptions& o, const std::optional<mx::array>& positions,
                                   mx::StreamOrDevice s) {
  const mx::Dtype type = stores[0].dtype();
  // Rows to be packed keep their type if the kernels support it, or become float32.
  auto fresh = [&](const mx::array& x) {
    return o.bits > 0 && has_kernels(x.dtype()) ? x : mx::astype(x, o.bits > 0 ? mx::float32 : type, s);
  };
  std::vector<mx::array> inputs = stores;
  inputs.push_back(q);
  cpu::Type k_type = cpu::Type::f32, v_type = cpu::Type::f32;
  if (k) {
    inputs.push_back(fresh(*k));
    k_type = type_of(inputs.back().dtype());
  }
  if (v) {
    inputs.push_back(fresh(*v));
    v_type = type_of(inputs.back().dtype());
  }
  if (sinks) {
    inputs.push_back(mx::astype(*sinks, mx::float32, s));
  }
  const int at_positions = positions ? int(inputs.size()) : -1;
  if (positions) {
    inputs.push_back(*positions);
  }
  inputs.insert(inputs.end(), after.begin(), after.end());

  std::vector<mx::Shape> shapes{{q.shape(0), a.heads, a.value_dim}};
  std::vector<mx::Dtype> types{q.dtype()};
  std::vector<cpu::Reuse> reuse;
  if (a.write) {
    for (size_t i = 0; i < stores.size(); i++) {
      shapes.push_back(stores[i].shape());
      types.push_back(type);
      reuse.push_back({int(i) + 1, int(i), true});
    }
  } else {
    shapes.push_back({1});
    types.push_back(mx::uint8);
  }
  cpu::AttentionShape shape{type_of(q.dtype()), type_of(type), a.heads, a.kv_heads, a.dim, a.value_dim, o.scale};
  shape.softcap = o.softcap;
  shape.window = o.window;
  shape.bits = o.bits;
  shape.fast = cpu::math() == cpu::Math::fast;
  auto body = [a = a, o, shape, k_type, v_type, count = stores.size(), at_positions,
               has_sinks = sinks.has_value()](const cpu::Memory& memory) mutable {
    if (at_positions >= 0) {
      move_to(memory.input<int32_t>(at_positions), a, o);
    }
    const int64_t q_size = shape.q_type == cpu::Type::f32 ? 4 : 2;
    const int64_t size = o.bits > 0 ? 1 : shape.kv_type == cpu::Type::f32 ? 4 : 2;
    const int at_q = int(count), at_k = at_q + 1, at_v = at_k + 1;
    const int at_sinks = at_q + 1 + (a.write ? 1 : 0) + (a.write && a.separate_values ? 1 : 0);
    const char* k = a.write ? memory.input<char>(at_k) : nullptr;
    const char* v = a.write && a.separate_values ? memory.input<char>(at_v) : nullptr;
    if (a.write && o.bits > 0) {
      const int64_t rows = int64_t(a.fresh) * a.kv_heads;
      char* packed = cpu::scratch<char>(kPackedScratch, size_t(rows * (a.key_width + a.value_width)));
      cpu::pack_rows(k_type, k, rows, a.dim, o.bits, packed);
      k = packed;
      if (a.separate_values) {
        packed += rows * a.key_width;
        cpu::pack_rows(v_type, v, rows, a.value_dim, o.bits, packed);
        v = packed;
      }
    }
    auto write = [&](const Step& t) {
      write_rows(k, memory.output<char>(int(t.store) + 1), t, a.kv_heads, a.key_width * size, o.ring);
      if (a.separate_values) {
        write_rows(v, memory.output<char>(int(t.store) + 2), t, a.kv_heads, a.value_width * size, o.ring);
      }
    };
    std::vector<cpu::AttentionRows> all;
    for (const Step& t : a.steps) {
      bool write_last = a.write && must_write_last(t, o);
      if (a.write && !write_last) {
        write(t);
      }
      cpu::AttentionRows r{};
      r.q = memory.input<char>(at_q) + int64_t(t.row) * a.heads * a.dim * q_size;
      r.out = memory.output<char>(0) + int64_t(t.row) * a.heads * a.value_dim * q_size;
      r.q_head = a.dim;
      r.q_row = int64_t(a.heads) * a.dim;
      r.out_head = a.value_dim;
      r.out_row = int64_t(a.heads) * a.value_dim;
      r.position = t.position;
      r.count = t.rows;
      const char* keys = memory.input<char>(int(t.store));
      const char* values = a.separate_values ? memory.input<char>(int(t.store) + 1) : keys;
      const int64_t k_width = a.key_width, v_width = a.value_width;
      for (auto run : slots(first_seen(t, o), stored_end(t, write_last), t.capacity, o.ring)) {
        r.runs[r.run_count++] = {keys + run.slot * k_width * size, values + run.slot * v_width * size,
                                 t.capacity * k_width, k_width, t.capacity * v_width, v_width, run.position, run.count};
      }
      if (write_last) {
        const char* new_keys = k + int64_t(t.first) * a.kv_heads * k_width * size;
        const char* new_values = a.separate_values ? v + int64_t(t.first) * a.kv_heads * v_width * size : new_keys;
        r.runs[r.run_count++] = {new_keys, new_values, k_width, a.kv_heads * k_width, v_width, a.kv_heads * v_width,
                                 t.begin(), t.fresh};
      }
      all.push_back(r);
    }
    cpu::attention(shape, all, has_sinks ? memory.input<float>(at_sinks) : nullptr);
    for (const Step& t : a.steps) {
      if (a.write && must_write_last(t, o)) {
        write(t);
      }
    }
    if (!a.write) {
      *memory.output<uint8_t>(1) = 0;
    }
  };
  return cpu::node("attend", std::move(inputs), std::move(shapes), std::move(types), s, std::move(body),
                   std::move(reuse));
}

// Returns the contents of runs of slots, in order of position.
mx::array gather(const mx::array& store, const std::vector<Slots>& runs, mx::StreamOrDevice s) {
  std::vector<mx::array> parts;
  for (auto r : runs) {
    mx::Shape stop = store.shape();
    stop[2] = int(r.slot + r.count);
    parts.push_back(mx::slice(store, {0, 0, int(r.slot), 0}, stop, s));
  }
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 2, s);
}

// Returns rows [first, first+rows) of x [T, heads, size] as [1, heads, rows, size].
mx::array rows_of(const mx::array& x, int first, int rows, mx::StreamOrDevice s) {
  auto part = mx::slice(x, {first, 0, 0}, {first + rows, x.shape(1), x.shape(2)}, s);
  return mx::expand_dims(mx::transpose(part, {1, 0, 2}, s), 0, s);
}

mx::array with_written_rows(mx::array store, const mx::array& x, const Step& t, bool ring, mx::StreamOrDevice s) {
  int64_t skip = std::max<int64_t>(0, t.fresh - t.capacity);
  auto rows = mx::astype(rows_of(x, t.first, t.fresh, s), store.dtype(), s);
  for (auto r : slots(t.begin() + skip, t.seen, t.capacity, ring)) {
    int from = int(r.position - t.begin());
    auto part = mx::slice(rows, {0, 0, from, 0}, {1, rows.shape(1), from + int(r.count), rows.shape(3)}, s);
    mx::Shape stop = store.shape();
    stop[2] = int(r.slot + r.count);
    store = mx::slice_update(store, part, {0, 0, int(r.slot), 0}, stop, s);
  }
  return store;
}

// Returns a boolean mask [rows, n]: whether a row sees a position, for n positions from first on. Empty if all rows see
// all of them.
std::optional<mx::array> visibility_mask(const Step& t, const AttendOptions& o, int64_t first, int n,
                                         mx::StreamOrDevice s) {
  bool ends = t.rows > 1 || t.position + 1 < t.seen, begins = o.window > 0 && t.position + t.rows - o.window > first;
  if (!ends && !begins) {
    return std::nullopt;
  }
  auto row = mx::expand_dims(mx::arange(0, t.rows, 1, mx::int32, s), 1, s);
  auto row_position = mx::add(row, mx::array(int(t.position - first)), s);
  auto key = mx::arange(0, n, 1, mx::int32, s);
  auto seen = mx::less_equal(key, row_position, s);
  if (o.window > 0) {
    seen = mx::logical_and(seen, mx::greater(key, mx::subtract(row_position, mx::array(o.window), s), s), s);
  }
  return seen;
}

// Attention with soft cap and sinks, composed of MLX's operations.
mx::array capped_attention(const mx::array& q, mx::array k, mx::array v, const std::optional<mx::array>& mask,
                           const std::optional<mx::array>& sinks, const AttendOptions& o, mx::StreamOrDevice s) {
  const int heads = q.shape(1), groups = k.shape(1), rows = q.shape(2);
  auto wide = [&](const mx::array& x) { return mx::astype(x, mx::promote_types(x.dtype(), mx::float32), s); };
  auto grouped = mx::reshape(wide(q), {1, groups, heads / groups, rows, q.shape(3)}, s);
  auto keys = mx::swapaxes(mx::expand_dims(wide(k), 2, s), -1, -2, s);
  auto scores = mx::multiply(mx::matmul(grouped, keys, s), mx::array(o.scale, grouped.dtype()), s);
  auto cap = mx::array(o.softcap, scores.dtype());
  scores = mx::multiply(mx::tanh(mx::divide(scores, cap, s), s), cap, s);
  if (mask) {
    scores = mx::where(*mask, scores, mx::array(-std::numeric_limits<float>::infinity(), scores.dtype()), s);
  }
  if (sinks) {
    auto extra = mx::reshape(mx::astype(*sinks, scores.dtype(), s), {1, groups, heads / groups, 1, 1}, s);
    extra = mx::broadcast_to(extra, {1, groups, heads / groups, rows, 1}, s);
    scores = mx::concatenate({extra, scores}, -1, s);
  }
  auto weights = mx::softmax(scores, -1, true, s);
  if (sinks) {
    mx::Shape start(5, 0);
    start[4] = 1;
    weights = mx::slice(weights, start, weights.shape(), s);
  }
  auto out = mx::matmul(weights, mx::expand_dims(wide(v), 2, s), s);
  return mx::astype(mx::reshape(out, {1, heads, rows, v.shape(3)}, s), q.dtype(), s);
}

// attend composed of MLX's operations, segment by segment.
std::vector<mx::array> attend_composed(const Attend& a, const mx::array& q, const std::optional<mx::array>& k,
                                       const std::optional<mx::array>& v, std::vector<mx::array> stores,
                                       const std::optional<mx::array>& sinks, const AttendOptions& o,
                                       mx::StreamOrDevice s) {
  auto kept = [&](const std::optional<mx::array>& x) { return x && o.bits > 0 ? pack_rows(*x, o.bits, s) : x; };
  const auto new_keys = kept(k), new_values = kept(v);
  std::vector<mx::array> outs;
  for (const Step& t : a.steps) {
    bool write_last = a.write && must_write_last(t, o);
    auto old = stores;
    if (a.write) {
      stores[t.store] = with_written_rows(stores[t.store], *new_keys, t, o.ring, s);
      if (a.separate_values) {
        stores[t.store + 1] = with_written_rows(stores[t.store + 1], *new_values, t, o.ring, s);
      }
    }
    int64_t first = write_last ? std::min(first_seen(t, o), t.begin()) : first_seen(t, o);
    auto runs = slots(first, stored_end(t, write_last), t.capacity, o.ring);
    auto history = [&](size_t store, const std::optional<mx::array>& fresh) {
      if (!write_last) {
        return gather(stores[store], runs, s);
      }
      auto rows = mx::astype(rows_of(*fresh, t.first, t.fresh, s), old[store].dtype(), s);
      return runs.empty() ? rows : mx::concatenate({gather(old[store], runs, s), rows}, 2, s);
    };
    auto as_query = [&](const mx::array& x) { return mx::astype(x, q.dtype(), s); };
    auto unpacked = [&](const mx::array& x) { return o.bits > 0 ? unpack_rows(x, o.bits, q.dtype(), s) : as_query(x); };
    auto keys = unpacked(history(t.store, new_keys));
    auto values = a.separate_values ? unpacked(history(t.store + 1, new_values))
                          : mx::slice(keys, {0, 0, 0, 0}, {1, keys.shape(1), keys.shape(2), a.value_dim}, s);
    auto queries = rows_of(q, t.row, t.rows, s);
    auto mask = visibility_mask(t, o, first, keys.shape(2), s);
    std::optional<mx::array> sink;
    if (sinks) {
      sink = as_query(*sinks);
    }
    auto y = o.softcap > 0 ? capped_attention(queries, keys, values, mask, sink, o, s)
                           : mx::fast::scaled_dot_product_attention(queries, keys, values, o.scale, "", mask, sink,
                                                                    false, s);
    outs.push_back(mx::squeeze(mx::transpose(y, {0, 2, 1, 3}, s), 0, s));
  }
  std::vector<mx::array> results{outs.size() == 1 ? outs[0] : mx::concatenate(outs, 0, s)};
  if (a.write) {
    results.insert(results.end(), stores.begin(), stores.end());
  } else {
    // MLX's operations are ordered by their data, so that nothing has to wait for this array.
    results.push_back(mx::zeros({1}, mx::uint8, s));
  }
  return results;
}

}  // namespace

std::vector<mx::array> attend(const mx::array& q, const std::optional<mx::array>& k, const std::optional<mx::array>& v,
                              const std::vector<mx::array>& stores, const std::vector<int>& segments,
                              const std::optional<mx::array>& sinks, const std::vector<mx::array>& after,
                              const AttendOptions& options, const std::optional<mx::array>& positions,
                              mx::StreamOrDevice s) {
  Attend a = parse_arguments(q, k, v, stores, segments, sinks, options);
  if (positions && (positions->dtype() != mx::int32 || positions->shape() != mx::Shape{q.shape(0)})) {
    refuse("attend: positions " + to_string(*positions) + " are not one int32 per row of " + to_string(q));
  }
  bool kernels = cpu::on_cpu(s) && has_kernels(q.dtype()) && (options.bits > 0 || has_kernels(stores[0].dtype())) &&
                 (!a.separate_values || stores[1].dtype() == stores[0].dtype()) && a.dim <= cpu::kMaxHeadDim &&
                 a.value_dim <= cpu::kMaxHeadDim;
  if (kernels) {
    return attend_with_kernels(a, q, k, v, stores, sinks, after, options, positions, s);
  }
  return attend_composed(a, q, k, v, stores, sinks, options, s);
}

}  // namespace ingot
