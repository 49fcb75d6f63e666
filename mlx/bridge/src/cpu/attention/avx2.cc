#define INGOT_ISA avx2
#include "cpu/attention/index.h"
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_avx2 = {
    .panel = avx2::kPanel,
    .chunk = avx2::kChunk,
    .tile = avx2::tile,
    .small_batch = avx2::small_batch,
    .join = avx2::join,
    .index_panel = avx2::kIndexPanel,
    .index = avx2::index_panels,
    .pack = avx2::pack,
};

}  // namespace ingot::cpu
