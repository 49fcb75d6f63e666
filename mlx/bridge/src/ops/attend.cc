// attend: attention over KV caches, by our kernels on the CPU.
#include "ops/attend.h"

#include <cstring>
#include <stdexcept>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/attention/attention.h"
#include "cpu/isa.h"
#include "cpu/node.h"
#include "ops/matrix.h"

namespace ingot {

std::vector<Slots> slots(int64_t first, int64_t end, int64_t capacity, bool ring) {
  std::vector<Slots> runs;
  for (int64_t p = first; p < end;) {
    int64_t slot = ring ? p % capacity : p, n = std::min(end - p, capacity - slot);
    runs.push_back({p, slot, n});
    p += n;
  }
  return runs;
}

std::vector<Slots> own_slots(const Step& t, int64_t first, int64_t end, bool ring) {
  auto runs = slots(std::max(first, t.base) - t.base, end - t.base, t.capacity, ring);
  for (auto& r : runs) {
    r.position += t.base;
  }
  return runs;
}

std::vector<Slots> shared_slots(const SharedPart& p, int64_t first, int64_t end) {
  first = std::max(first, p.position);
  end = std::min(end, p.position + p.count);
  return first < end ? std::vector<Slots>{{first, p.slot + first - p.position, end - first}} : std::vector<Slots>{};
}

namespace {

// Reports whether x is storage like another one.
bool is_like(const mx::array& x, const mx::array& like) {
  return x.ndim() == 4 && x.shape(0) == 1 && x.size() > 0 && x.shape(1) == like.shape(1) &&
         x.shape(3) == like.shape(3) && x.dtype() == like.dtype();
}

// Adds the shared parts to their segments.
void parse_parts(Attend& a, const std::vector<mx::array>& stores, const std::vector<mx::array>& shared,
                 const std::vector<int>& parts, bool ring) {
  const size_t each = a.separate_values ? 2 : 1, n = parts.size() / 3;
  if (parts.size() % 3 != 0 || shared.size() != n * each || (ring && n > 0)) {
    refuse("attend: " + std::to_string(shared.size()) + " shared arrays and " + std::to_string(parts.size()) +
           " numbers are not a list of {segment, begin, end}, or the storage is a ring");
  }
  for (size_t i = 0; i < n; i++) {
    const int *now = &parts[3 * i], last = i ? now[-3] : 0;
    const auto& keys = shared[i * each];
    bool fits = now[0] >= last && now[0] < int(a.steps.size()) && now[1] >= 0 && now[1] < now[2];
    for (size_t j = 0; j < each; j++) {
      const auto& x = shared[i * each + j];
      fits = fits && is_like(x, stores[j]) && now[2] <= x.shape(2) && x.shape(2) == keys.shape(2);
    }
    if (!fits || a.steps[size_t(now[0])].shared.size() == cpu::kMaxShared) {
      refuse("attend: shared part " + std::to_string(i) + " has slots [" + std::to_string(now[1]) + ", " +
             std::to_string(now[2]) + ") of " + to_string(keys) + " for segment " + std::to_string(now[0]) +
             ", which do not fit, or the segment has too many");
    }
    Step& t = a.steps[size_t(now[0])];
    t.shared.push_back({i * each, t.base, now[1], now[2] - now[1], keys.shape(2)});
    t.base += now[2] - now[1];
  }
}

// Checks the arguments of attend and converts them. Throws std::invalid_argument.
Attend parse_arguments(const mx::array& q, const std::optional<mx::array>& k, const std::optional<mx::array>& v,
            const std::vector<mx::array>& stores, const std::vector<int>& segments,
            const std::optional<mx::array>& sinks, const AttendOptions& o, const std::vector<mx::array>& shared,
            const std::vector<int>& parts) {
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
  if (o.chunked && o.window == 0) {
    refuse("attend: chunks without a size");
  }
  if (o.bits != 0 && o.bits != 8 && o.bits != 4) {
    refuse("attend: storage of " + std::to_string(o.bits) + " bits; want 8 or 4, or 0 if not packed");
  }
  a.heads = q.shape(1);
  a.dim = q.shape(2);
  for (size_t i = 0; i < stores.size(); i++) {
    const auto& x = stores[i];
    const auto& like = stores[i % each];
    if (!is_like(x, like) || !(o.bits > 0 ? x.dtype() == mx::uint8 : mx::issubdtype(x.dtype(), mx::floating))) {
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
  for (size_t i = 0; i < n; i++) {
    const int* now = &segments[4 * i];
    a.steps.push_back({0, now[0], now[1], now[2], now[3], 0, stores[i * each].shape(2), i * each});
  }
  parse_parts(a, stores, shared, parts, o.ring);
  int64_t row = 0, first = 0;
  for (size_t i = 0; i < n; i++) {
    Step& t = a.steps[i];
    t.row = int(row);
    t.first = int(first);
    if (a.separate_values && stores[i * each + 1].shape(2) != t.capacity) {
      refuse("attend: keys and values have different capacities");
    }
    bool fits = t.rows > 0 && t.position >= 0 && t.seen > 0 && (o.ring || t.seen <= t.base + t.capacity) &&
                (a.write ? t.seen == t.position + t.rows && t.fresh >= t.rows && t.begin() >= t.base : t.fresh == 0) &&
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
  }
  if (row != q.shape(0) || first != a.fresh) {
    refuse("attend: the segments have " + std::to_string(row) + " rows of " + std::to_string(q.shape(0)) +
           " and store " +
           std::to_string(first) + " of " + std::to_string(a.fresh));
  }
  return a;
}

// Copies the last new rows of a segment, at most capacity, to their slots in one store.
void write_rows(const char* from, char* store, const Step& t, int heads, int64_t row_bytes, bool ring) {
  int64_t skip = std::max<int64_t>(0, t.fresh - t.capacity);
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 15) / std::max<int64_t>(1, heads * row_bytes));
  cpu::parallel(t.fresh - skip, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin + skip; i < end + skip; i++) {
      int64_t slot = ring ? (t.begin() + i) % t.capacity : t.begin() + i - t.base;
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
    if (now < 0 || t.begin() < t.base || (!o.ring && t.seen > t.base + t.capacity)) {
      throw std::out_of_range("attend: " + std::to_string(t.rows) + " rows from position " + std::to_string(now) +
                              " do not fit storage of " + std::to_string(t.capacity) + " from position " +
                              std::to_string(t.base));
    }
  }
}

constexpr int kPackedScratch = 6;  // scratch slot of a step's packed rows

std::vector<mx::array> attend_with_kernels(const Attend& a, const mx::array& q, const std::optional<mx::array>& k,
                                   const std::optional<mx::array>& v, const std::vector<mx::array>& stores,
                                   const std::optional<mx::array>& sinks, const std::vector<mx::array>& after,
                                   const AttendOptions& o, const std::optional<mx::array>& positions,
                                   const std::vector<mx::array>& shared, mx::StreamOrDevice s) {
  const mx::Dtype type = stores[0].dtype();
  // Rows to be packed keep their type if the kernels support it, or become float32.
  auto fresh = [&](const mx::array& x) {
    return o.bits > 0 && floating(x.dtype()) ? x : mx::astype(x, o.bits > 0 ? mx::float32 : type, s);
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
  const int at_shared = int(inputs.size());
  inputs.insert(inputs.end(), shared.begin(), shared.end());
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
  shape.chunked = o.chunked;
  shape.bits = o.bits;
  shape.fast = cpu::math() == cpu::Math::fast;
  auto body = [a = a, o, shape, k_type, v_type, count = stores.size(), at_positions, at_shared,
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
      const int64_t k_width = a.key_width, v_width = a.value_width;
      const int64_t first = first_seen(t, o), end = stored_end(t, write_last);
      auto add = [&](int input, int64_t capacity, const std::vector<Slots>& runs) {
        const char* keys = memory.input<char>(input);
        const char* values = a.separate_values ? memory.input<char>(input + 1) : keys;
        for (const auto& run : runs) {
          r.runs.push_back({keys + run.slot * k_width * size, values + run.slot * v_width * size, capacity * k_width,
                            k_width, capacity * v_width, v_width, run.position, run.count});
        }
      };
      for (const auto& p : t.shared) {
        add(at_shared + int(p.array), p.capacity, shared_slots(p, first, end));
      }
      add(int(t.store), t.capacity, own_slots(t, first, end, o.ring));
      if (write_last) {
        const char* new_keys = k + int64_t(t.first) * a.kv_heads * k_width * size;
        const char* new_values = a.separate_values ? v + int64_t(t.first) * a.kv_heads * v_width * size : new_keys;
        r.runs.push_back({new_keys, new_values, k_width, a.kv_heads * k_width, v_width, a.kv_heads * v_width, t.begin(),
                          t.fresh});
      }
      all.push_back(std::move(r));
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

}  // namespace

std::vector<mx::array> attend(const mx::array& q, const std::optional<mx::array>& k, const std::optional<mx::array>& v,
                              const std::vector<mx::array>& stores, const std::vector<int>& segments,
                              const std::optional<mx::array>& sinks, const std::vector<mx::array>& after,
                              const AttendOptions& options, const std::optional<mx::array>& positions,
                              const std::vector<mx::array>& shared, const std::vector<int>& parts,
                              mx::StreamOrDevice s) {
  Attend a = parse_arguments(q, k, v, stores, segments, sinks, options, shared, parts);
  if (positions && (positions->dtype() != mx::int32 || positions->shape() != mx::Shape{q.shape(0)})) {
    refuse("attend: positions " + to_string(*positions) + " are not one int32 per row of " + to_string(q));
  }
  bool kernels = cpu::on_cpu(s) && floating(q.dtype()) && (options.bits > 0 || floating(stores[0].dtype())) &&
                 (!a.separate_values || stores[1].dtype() == stores[0].dtype()) && a.dim <= cpu::kMaxHeadDim &&
                 a.value_dim <= cpu::kMaxHeadDim;
  if (kernels) {
    return attend_with_kernels(a, q, k, v, stores, sinks, after, options, positions, shared, s);
  }
  return attend_composed(a, q, k, v, stores, sinks, options, shared, s);
}

}  // namespace ingot
