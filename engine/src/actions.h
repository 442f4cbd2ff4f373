/* Action data, members of action profiles and groups of selectors.
 *
 * Invariants: an entry points at action data that it owns, or at a member's, or at a group; a member or group that
 * something points at is not deleted.  A member's data stays at one address for its life (it has room for the widest
 * action), so modifying a member needs no walk over entries.  A group's members are ordered by handle.
 */
#ifndef PLAIT_ACTIONS_H
#define PLAIT_ACTIONS_H

#include "api.h"
#include "units.h"

#define PLAIT_GROUP_LIMIT 65536u /* sum of weights */

struct plait_member;
struct plait_profile_group;

struct plait_actions {
    const struct plait_pipeline *pipeline;
    uint32_t widest; /* bytes of the longest parameter list */
    struct plait_member **members;
    uint32_t n_members, members_capacity;
    struct plait_profile_group **groups;
    uint32_t n_groups, groups_capacity;
};

void plait_actions_init(struct plait_actions *actions, const struct plait_pipeline *pipeline);
void plait_actions_free(struct plait_actions *actions);

/* Bytes that the wire form of an action's parameters has. */
uint32_t plait_action_wire_bytes(const struct plait_action_desc *action);
/* Checks `wire` and stores it in a new block (to be freed with free). */
int plait_action_data_create(const struct plait_actions *actions, uint32_t action, const uint8_t *wire,
                             uint32_t wire_length, struct plait_action_data **data, struct plait_error *error);

int plait_member_create(struct plait_actions *actions, uint32_t action, const uint8_t *wire, uint32_t wire_length,
                        uint32_t *handle, struct plait_error *error);
int plait_member_modify(struct plait_actions *actions, uint32_t handle, uint32_t action, const uint8_t *wire,
                        uint32_t wire_length, struct plait_error *error);
int plait_member_delete(struct plait_actions *actions, uint32_t handle, struct plait_error *error);
int plait_group_create(struct plait_actions *actions, uint32_t *handle, struct plait_error *error);
int plait_group_set(struct plait_actions *actions, uint32_t handle, const uint32_t *members, const uint32_t *weights,
                    uint32_t count, struct plait_error *error);
int plait_group_delete(struct plait_actions *actions, uint32_t handle, struct plait_error *error);

/* What an entry runs. Holds a reference on the member or group, or owns its action data. */
struct plait_bound {
    struct plait_action_data *own;
    struct plait_member *member;
    struct plait_profile_group *group;
};

int plait_bind(struct plait_actions *actions, const struct plait_target *target, enum plait_table_kind kind,
               struct plait_bound *bound, struct plait_error *error);
void plait_unbind(struct plait_bound *bound);
/* Writes data and group of `entry` from what it is bound to. */
void plait_bound_show(const struct plait_bound *bound, struct plait_entry *entry);

#endif
