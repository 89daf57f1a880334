//! What may be wrong with the controllers that are played, so that each rule is seen to find what it is there for.

/// What is wrong with the controllers that are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    None,
    /// References keep nothing in its first phase.
    DrainWithReference,
    /// References are released before the object is drained.
    ReleaseEarly,
    /// A target is taken for deleted by its name.
    CascadeByName,
    /// That an object went is forgotten.
    ForgetTombstone,
    /// What names nothing is found by every deletion.
    EmptyFilter,
    /// What a list does not show counts as deleted.
    AbsentIsDeleted,
    /// What leaves for the archive counts as deleted.
    EvictionIsDeletion,
    /// Of a field that changes, the old target is released first.
    OldFirst,
    /// What is owned goes before its owner drains.
    OwnedAtOnce,
    /// An object no longer waits for what it owns if that has no reference on it.
    FinalizeWithOwned,
    /// A phase is recorded whatever was written since.
    RecordAnyway,
    /// A live holder is not written before its former target loses the reference.
    ReleaseUndetached,
    /// A live holder is not written before its row on what is deleted in the archive is released.
    ReleaseRowUndetached,
    /// A live holder releases its former target although the one that it names may have lost the reference.
    ReleaseUnconfirmed,
    /// The former target loses the reference whatever was written to it since.
    ReleaseAnyVersion,
    /// Whoever is leaving the cluster releases its reference with the first one that does.
    ReleaseTogether,
    /// Of several whose references were placed, the first one alone is read again.
    PlaceUnread,
    /// The field of a move is written before its new target has the reference.
    MoveBeforePlacing,
    /// A move does not write to a target that has the reference already.
    MoveWithoutWriting,
    /// The former target of an archived holder loses the reference before the new one has it.
    MoveOldFirst,
    /// Whoever moves an archived holder does not read it again after the reference was placed or released.
    SettleUnread,
    /// Whoever moves an archived holder releases the former target in whatever version it is.
    SettleAnyVersion,
    /// What a move has placed stays where the archived holder was deleted before its field was written.
    MoveLeavesPlaced,
    /// A move of an archived holder that names the target already settles nothing.
    RepeatUnsettled,
    /// A reference at another service is released, and the archive is not asked whether its holder names that again.
    ReleaseUnasked,
    /// What an object holds at another service is forgotten when it goes.
    ForgetAtPeer,
    /// A service that does not answer counts as one that has no such object.
    DownIsGone,
    /// The reference of an archived holder is taken off, and no row is written before.
    TakeOffWithoutRow,
    /// After a reference was placed on what is archived, its holder is not read again.
    HoldUnread,
    /// Nobody places references on what is archived.
    HoldNothing,
    /// Nobody asks the archive who holds an object.
    FreeWithoutSweep,
    /// An archived holder is deleted though something holds it.
    DeleteHeldRow,
    /// An archived holder is deleted by what it was when it was read.
    CascadeByStaleRow,
    /// What is archived and owned goes before its owner drains.
    SweepOwnedAtOnce,
    /// What a cleanup was asked for counts as done.
    BelieveCleanup,
    /// The cleanup of an object does not wait for what it owns, nor for the controllers of others.
    CleanUpEarly,
    /// What the cleanup of a tombstone was asked for counts as done.
    BelieveArchivedCleanup,
    /// The cleanup of a tombstone does not wait for its holders.
    CleanUpArchivedEarly,
    /// A tombstone goes whatever it has outside.
    EndUncleaned,
    /// What is deleted with another object out of the archive goes at once, whatever it has outside.
    TakeUncleaned,
    /// Nobody looks at what is deleted in the archive.
    LeaveTombstones,
    /// What names the object that has a tombstone's name now goes with the tombstone.
    TakeByName,
    /// A live holder of a tombstone is deleted whatever was written since it was read.
    TakeLiveAnyway,
    /// What a tombstone owns goes before it drains.
    TombstoneOwnedAtOnce,
    /// The phase of a tombstone is recorded whatever was written since.
    TombstoneAnyway,
    /// A tombstone goes though something holds it.
    EndHeld,
    /// What is owned holds its owner in the first phase, as everything else does.
    WaitForOwned,
    /// Of those whom a change concerns, some are decided on again.
    WakeFew,
    /// A reference stays that was placed for a holder which had released what it held.
    PlaceForFreed,
    /// Of the archived holders of an object, the first page is read.
    SweepOnePage,
    /// Of the tombstones, the first page is visited.
    WalkOnePage,
    /// What the Deleting annotation asks for is left to the ingester, also where there is none.
    LeaveRequested,
    /// What an object held last by a row ends with that, whether or not it was deleted.
    EndUnheld,
    /// What is archived and names an object is found by its row alone.
    SweepRowsAlone,
    /// What is archived, held itself and without a row on what is deleted stays as it is.
    SpareUnplaced,
    /// Nobody asks the archive for what is deleted with an object of another service.
    LeaveCascade,
    /// What archived holders that were moved have left at another service stays there when that deletes its object.
    LeaveMoved,
    /// Their rows stay on what their own service deletes in the cluster.
    LeaveMovedRow,
    /// Their rows stay on tombstones.
    LeaveMovedOnTombstone,
    /// An archived holder that was moved is not written before its reference on the former target is released.
    ReleaseMovedUndetached,
    /// At another service, that reference is released in whatever version the object of that name is.
    ReleaseMovedAnyVersion,
    /// A tombstone ends, and what it holds at other services is not released.
    EndUnreleased,
    /// A service that does not answer counts as one that has released what a tombstone holds.
    EndUnanswered,
    /// What the cluster does not have counts as gone, also where its kind is SQL-only.
    SqlOnlyIsGone,
    /// What was moved to an object that is being deleted is deleted with it, though its former target holds it.
    FollowRefusal,
    /// What is archived does not hold what was moved from there to an object that is being deleted.
    ForgetArchivedFormer,
    /// The same of what was moved to a tombstone.
    TakeFromFormer,
    /// An object of another service that has the reference of a holder is not read again before the holder goes.
    TrustHeld,
    /// What was known of another service counts although it may have been restored from a backup.
    TrustDoubted,
    /// The first phase is recorded whenever a deletion is decided on in it.
    RecordAgain,
    /// The reference of a holder that nobody finds holds nothing any more.
    DropLost,
    /// A holder is lost with the first answer that there is none.
    BelieveOneAnswer,
    /// A service that does not answer counts as one that has no such holder.
    SilenceIsAbsence,
    /// What people were told of an object that waits is forgotten.
    ReportAgain,
    /// The name of an event is the same whatever the object waits for.
    NameByObject,
    /// The name of an event changes with what the object waits for in the end.
    NameByRoots,
}

impl Bug {
    /// Those that small graphs find.
    pub(super) const IN_SMALL: [Self; 64] = [
        Self::DrainWithReference,
        Self::ReleaseEarly,
        Self::CascadeByName,
        Self::ForgetTombstone,
        Self::EmptyFilter,
        Self::AbsentIsDeleted,
        Self::EvictionIsDeletion,
        Self::OldFirst,
        Self::OwnedAtOnce,
        Self::FinalizeWithOwned,
        Self::RecordAnyway,
        Self::ReleaseUndetached,
        Self::ReleaseRowUndetached,
        Self::ReleaseUnconfirmed,
        Self::ReleaseAnyVersion,
        Self::ReleaseTogether,
        Self::PlaceUnread,
        Self::PlaceForFreed,
        Self::MoveBeforePlacing,
        Self::MoveWithoutWriting,
        Self::MoveOldFirst,
        Self::SettleUnread,
        Self::SettleAnyVersion,
        Self::MoveLeavesPlaced,
        Self::RepeatUnsettled,
        Self::ReleaseUnasked,
        Self::LeaveMoved,
        Self::LeaveMovedRow,
        Self::LeaveMovedOnTombstone,
        Self::ReleaseMovedUndetached,
        Self::ReleaseMovedAnyVersion,
        Self::ForgetAtPeer,
        Self::DownIsGone,
        Self::TakeOffWithoutRow,
        Self::HoldUnread,
        Self::HoldNothing,
        Self::FreeWithoutSweep,
        Self::DeleteHeldRow,
        Self::CascadeByStaleRow,
        Self::SweepOwnedAtOnce,
        Self::BelieveCleanup,
        Self::CleanUpEarly,
        Self::BelieveArchivedCleanup,
        Self::CleanUpArchivedEarly,
        Self::EndUncleaned,
        Self::TakeUncleaned,
        Self::LeaveTombstones,
        Self::TakeByName,
        Self::TakeLiveAnyway,
        Self::TombstoneOwnedAtOnce,
        Self::TombstoneAnyway,
        Self::EndHeld,
        Self::FollowRefusal,
        Self::ForgetArchivedFormer,
        Self::TakeFromFormer,
        Self::TrustHeld,
        Self::TrustDoubted,
        Self::RecordAgain,
        Self::DropLost,
        Self::BelieveOneAnswer,
        Self::SilenceIsAbsence,
        Self::ReportAgain,
        Self::NameByObject,
        Self::NameByRoots,
    ];

    /// Those that large graphs find, the last twelve of them alone.
    pub(super) const IN_LARGE: [Self; 32] = [
        Self::DrainWithReference,
        Self::ReleaseEarly,
        Self::ForgetTombstone,
        Self::EmptyFilter,
        Self::AbsentIsDeleted,
        Self::EvictionIsDeletion,
        Self::OldFirst,
        Self::OwnedAtOnce,
        Self::MoveBeforePlacing,
        Self::ForgetAtPeer,
        Self::TakeOffWithoutRow,
        Self::FreeWithoutSweep,
        Self::DeleteHeldRow,
        Self::SweepOwnedAtOnce,
        Self::BelieveCleanup,
        Self::CleanUpEarly,
        Self::LeaveTombstones,
        Self::TakeByName,
        Self::TombstoneOwnedAtOnce,
        Self::EndHeld,
        Self::WaitForOwned,
        Self::WakeFew,
        Self::SweepOnePage,
        Self::WalkOnePage,
        Self::LeaveRequested,
        Self::SqlOnlyIsGone,
        Self::EndUnheld,
        Self::SweepRowsAlone,
        Self::SpareUnplaced,
        Self::LeaveCascade,
        Self::EndUnreleased,
        Self::EndUnanswered,
    ];
}
