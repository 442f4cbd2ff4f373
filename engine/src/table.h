/* Match tables: exact, LPM, ternary, range and optional as one structure, tuple-space search.
 *
 * A tuple is a mask and a hash set of the keys under it.  An exact table has one tuple, whose mask is all ones.  An
 * LPM table has one per prefix length in use, longest first: the first hit wins.  A table with ternary, range or
 * optional fields has one per distinct mask, ordered by the highest priority that the tuple has ever held: the search
 * ends when no later tuple can win.  A range field is masked out (its tuple bits are 0) and compared while walking the
 * chain of rules that share a masked key, so a table that tells its rules apart by ranges alone is searched linearly.
 *
 * Invariants: keys are stored masked, padded with zeros to whole 64-bit words; no two rules have equal match and
 * priority; among matching rules the largest priority wins, and of equal ones the first inserted; a rule's address does
 * not change until it is deleted.  Handles carry a generation, so a stale handle is refused, not misread.
 */
#ifndef PLAIT_TABLE_H
#define PLAIT_TABLE_H

#include "actions.h"
#include "api.h"
#include "units.h"

#define PLAIT_KEY_WORDS 64u /* longest key: 512 bytes */

/* Checks a descriptor from a program before anything is built from it. */
int plait_table_check(const struct plait_table_desc *desc, struct plait_error *error);
/* `seed` keys the hash, so that the sender of frames cannot choose collisions. */
int plait_table_create(struct plait_table *table, const struct plait_table_desc *desc, uint64_t seed,
                       struct plait_error *error);
void plait_table_free(struct plait_table *table); /* before plait_actions_free: it drops references */

struct plait_entry *plait_table_lookup(const struct plait_table *table, const uint8_t *key);

/* Makes room for a coming insert of `match`, so that the insert allocates and rehashes nothing large. Changes nothing
 * that look-ups read: it may run while packets flow, but not beside another change. */
int plait_table_prepare(struct plait_table *table, const struct plait_match_spec *match, struct plait_error *error);
int plait_table_insert(struct plait_table *table, struct plait_actions *actions, const struct plait_match_spec *match,
                       const struct plait_target *target, uint64_t *handle, struct plait_error *error);
int plait_table_modify(struct plait_table *table, struct plait_actions *actions, uint64_t handle,
                       const struct plait_target *target, struct plait_error *error);
int plait_table_delete(struct plait_table *table, uint64_t handle, struct plait_error *error);
/* The entry of a handle, or NULL with the error filled. */
struct plait_entry *plait_table_entry(struct plait_table *table, uint64_t handle, struct plait_error *error);
/* `target` NULL: nothing runs on a miss. */
int plait_table_default_set(struct plait_table *table, struct plait_actions *actions, const struct plait_target *target,
                            struct plait_error *error);
uint32_t plait_table_count(const struct plait_table *table);

#endif
