//! The part that all wrapping stores share: every request of an `ObjectStore` goes past two points, before it reaches
//! the wrapped store and before its answer returns.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    GetResult, GetResultPayload, MultipartUpload, ObjectStore, PutPayload, PutResult, Result, UploadPart,
};

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Put,
    /// The beginning, a part, the completion or the end of a multipart upload.
    Multipart,
    Get,
    List,
    /// The delete of one object.
    Delete,
    Copy,
    Rename,
}

impl Request {
    pub(super) fn is_write(self) -> bool {
        match self {
            Self::Put | Self::Multipart | Self::Delete | Self::Copy | Self::Rename => true,
            Self::Get | Self::List => false,
        }
    }

    /// Whether the store may hold more afterwards.
    pub(super) fn takes_room(self) -> bool {
        match self {
            Self::Put | Self::Multipart | Self::Copy => true,
            Self::Get | Self::List | Self::Delete | Self::Rename => false,
        }
    }
}

/// A wrapping store. `impl_object_store!` makes it an `ObjectStore`. Clones share everything.
pub(super) trait Intercept: Clone + fmt::Debug + Send + Sync + 'static {
    /// What is known of a request on its way back. The default is that of an answer's later items.
    type Passage: Default + Send;

    /// The wrapped store.
    fn store(&self) -> &Arc<dyn ObjectStore>;

    /// Awaited before `request`, which brings so many `bytes`, reaches the wrapped store. After an error it does not.
    fn before(&self, request: Request, bytes: u64) -> impl Future<Output = Result<Self::Passage>> + Send;

    /// Awaited before anything of an answer returns. An error takes its place.
    fn after(&self, passage: Self::Passage) -> impl Future<Output = Result<()>> + Send;
}

/// Makes an `Intercept` an `ObjectStore`.
macro_rules! impl_object_store {
    ($wrapper:ident) => {
        impl std::fmt::Display for $wrapper {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($wrapper), "({})"), self.store())
            }
        }

        #[async_trait::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl object_store::ObjectStore for $wrapper {
            async fn put_opts(
                &self,
                location: &object_store::path::Path,
                payload: object_store::PutPayload,
                options: object_store::PutOptions,
            ) -> object_store::Result<object_store::PutResult> {
                let bytes = payload.content_length() as u64;
                let put = self.store().put_opts(location, payload, options);
                $crate::store::intercept::call(self, Request::Put, bytes, put).await
            }

            async fn put_multipart_opts(
                &self,
                location: &object_store::path::Path,
                options: object_store::PutMultipartOptions,
            ) -> object_store::Result<Box<dyn object_store::MultipartUpload>> {
                let upload = self.store().put_multipart_opts(location, options);
                let upload = $crate::store::intercept::call(self, Request::Multipart, 0, upload).await?;
                Ok($crate::store::intercept::upload(self, upload))
            }

            async fn get_opts(
                &self,
                location: &object_store::path::Path,
                options: object_store::GetOptions,
            ) -> object_store::Result<object_store::GetResult> {
                let found = self.store().get_opts(location, options);
                let found = $crate::store::intercept::call(self, Request::Get, 0, found).await?;
                Ok($crate::store::intercept::found(self, found))
            }

            async fn get_ranges(
                &self,
                location: &object_store::path::Path,
                ranges: &[std::ops::Range<u64>],
            ) -> object_store::Result<Vec<bytes::Bytes>> {
                let found = self.store().get_ranges(location, ranges);
                $crate::store::intercept::call(self, Request::Get, 0, found).await
            }

            fn delete_stream(
                &self,
                locations: futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>>,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>> {
                $crate::store::intercept::delete(self, locations)
            }

            fn list(
                &self,
                prefix: Option<&object_store::path::Path>,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
                $crate::store::intercept::items(self, Some(Request::List), self.store().list(prefix))
            }

            fn list_with_offset(
                &self,
                prefix: Option<&object_store::path::Path>,
                offset: &object_store::path::Path,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
                let listed = self.store().list_with_offset(prefix, offset);
                $crate::store::intercept::items(self, Some(Request::List), listed)
            }

            async fn list_with_delimiter(
                &self,
                prefix: Option<&object_store::path::Path>,
            ) -> object_store::Result<object_store::ListResult> {
                let listed = self.store().list_with_delimiter(prefix);
                $crate::store::intercept::call(self, Request::List, 0, listed).await
            }

            async fn copy_opts(
                &self,
                from: &object_store::path::Path,
                to: &object_store::path::Path,
                options: object_store::CopyOptions,
            ) -> object_store::Result<()> {
                let copied = self.store().copy_opts(from, to, options);
                $crate::store::intercept::call(self, Request::Copy, 0, copied).await
            }

            async fn rename_opts(
                &self,
                from: &object_store::path::Path,
                to: &object_store::path::Path,
                options: object_store::RenameOptions,
            ) -> object_store::Result<()> {
                let renamed = self.store().rename_opts(from, to, options);
                $crate::store::intercept::call(self, Request::Rename, 0, renamed).await
            }
        }
    };
}

pub(super) use impl_object_store;

/// One request that brings `bytes` and has one answer. `answer` does nothing before it is awaited.
pub(super) async fn call<T>(
    wrapper: &impl Intercept,
    request: Request,
    bytes: u64,
    answer: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let passage = wrapper.before(request, bytes).await?;
    let answer = answer.await;
    wrapper.after(passage).await?;
    answer
}

/// One answer of many items, to `request` unless that is answered already.
pub(super) fn items<T: Send + 'static>(
    wrapper: &impl Intercept,
    request: Option<Request>,
    items: BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    let state = (wrapper.clone(), request, items);
    let passed = stream::try_unfold(state, |(wrapper, request, mut items)| async move {
        let passage = match request {
            Some(request) => wrapper.before(request, 0).await?,
            None => Default::default(),
        };
        let item = items.next().await;
        wrapper.after(passage).await?;
        Ok(item.map(|item| (item, (wrapper, None, items))))
    });
    // An item that is an error does not end the answer; one in the answer's place does.
    passed.map(Result::flatten).boxed()
}

/// Each delete is a request of its own. Answers come in the order of `locations`.
pub(super) fn delete<W: Intercept>(
    wrapper: &W,
    locations: BoxStream<'static, Result<Path>>,
) -> BoxStream<'static, Result<Path>> {
    let passages = Arc::new(Mutex::new(VecDeque::new()));
    let (before, begun) = (wrapper.clone(), passages.clone());
    let locations = locations.then(move |location| {
        let (before, begun) = (before.clone(), begun.clone());
        async move {
            let passed = before.before(Request::Delete, 0).await;
            let (passage, location) = match passed {
                Ok(passage) => (passage, location),
                Err(error) => (W::Passage::default(), Err(error)),
            };
            begun.lock().unwrap_or_else(PoisonError::into_inner).push_back(passage);
            location
        }
    });
    let after = wrapper.clone();
    let deleted = wrapper.store().delete_stream(locations.boxed()).then(move |item| {
        let passage = passages.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default();
        let after = after.clone();
        async move {
            after.after(passage).await?;
            item
        }
    });
    deleted.boxed()
}

/// The content of an object returns item by item.
pub(super) fn found(wrapper: &impl Intercept, found: GetResult) -> GetResult {
    let (meta, range) = (found.meta.clone(), found.range.clone());
    let (attributes, extensions) = (found.attributes.clone(), found.extensions.clone());
    let content: BoxStream<'static, Result<Bytes>> = items(wrapper, None, found.into_stream());
    GetResult { payload: GetResultPayload::Stream(content), meta, range, attributes, extensions }
}

/// An upload whose parts and end are requests of their own.
pub(super) fn upload(wrapper: &impl Intercept, upload: Box<dyn MultipartUpload>) -> Box<dyn MultipartUpload> {
    Box::new(Upload { wrapper: wrapper.clone(), upload })
}

#[derive(Debug)]
struct Upload<W> {
    wrapper: W,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl<W: Intercept> MultipartUpload for Upload<W> {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let bytes = data.content_length() as u64;
        let (wrapper, part) = (self.wrapper.clone(), self.upload.put_part(data));
        Box::pin(async move { call(&wrapper, Request::Multipart, bytes, part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        call(&self.wrapper, Request::Multipart, 0, self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        call(&self.wrapper, Request::Multipart, 0, self.upload.abort()).await
    }
}
